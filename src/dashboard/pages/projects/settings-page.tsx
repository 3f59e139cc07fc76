import { useState, type ReactNode } from "react";
import { limits } from "../../../contract/limits.ts";
import { agentsMay, previewContents } from "../../../contract/projects.ts";
import { useAction } from "../../data/api.ts";
import { textOf } from "../../data/text-of.ts";
import { useWhyNot } from "../../data/me.ts";
import { useProject, type Project } from "../../data/project.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { Field, SelectField, TextArea, TextField } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Page, Section } from "../../ui/page.tsx";
import { Problem } from "../../ui/problem.tsx";
import { Mono } from "../../ui/text.tsx";
import { View } from "../../ui/view.tsx";
import { DiskUse } from "../disk/disk-use.tsx";
import { Followed } from "../follow/followed.tsx";
import { Runtime } from "../platform/runtime.tsx";
import { DeleteProject } from "./delete-project.tsx";
import { Maintenance } from "./maintenance.tsx";
import { ProjectName } from "./project-name.tsx";
import { SourceSettings } from "./source-settings.tsx";

export function SettingsPage() {
  const project = useProject();
  return (
    <View of={project}>
      {(data) => (
        <Page title="Settings">
          {data.state === "active" && <ProjectName project={data} />}
          <Overrides project={data} />
          {data.state === "active" && <Maintenance project={data} />}
          {data.state === "active" && <SourceSettings project={data} />}
          {data.state === "active" && <Followed project={data} />}
          {data.state === "active" && <Repository project={data} />}
          {data.state === "active" && <DiskUse slug={data.slug} />}
          {data.state === "active" && <Runtime slug={data.slug} />}
          <Danger project={data} />
        </Page>
      )}
    </View>
  );
}

function Overrides({ project }: { readonly project: Project }) {
  const save = useAction("projects.settings");
  const { port, health_path: health, start_seconds: start, sleep_after_minutes: sleep, root, watch } = project;
  const { previews, preview_variables: inherited, preview_data: data, agents } = project;
  const submit = (form: FormData) =>
    save.mutate({
      params: { slug: project.slug },
      body: {
        port: textOf(form, "port") === "" ? null : Number(textOf(form, "port")),
        health_path: textOf(form, "health_path") || null,
        start_seconds: textOf(form, "start_seconds") === "" ? null : Number(textOf(form, "start_seconds")),
        sleep_after_minutes: textOf(form, "sleep") === "" ? null : Number(textOf(form, "sleep")),
        root: textOf(form, "root").trim() || null,
        watch: linesOf(textOf(form, "watch")),
        ...(project.preview === null && {
          previews: linesOf(textOf(form, "previews")),
          preview_variables: linesOf(textOf(form, "inherited")),
          preview_data: previewContents.find((each) => each === textOf(form, "preview_data")) ?? "empty",
          ...(textOf(form, "agents") !== agents && {
            agents: agentsMay.find((each) => each === textOf(form, "agents")) ?? "deploy",
          }),
        }),
      },
    });
  return (
    <Section
      title="Application"
      lead="From the next deployment on. An empty field leaves the value to berth.json or the default."
    >
      <Form
        // A new key shows what another user has saved meanwhile.
        key={JSON.stringify([port, health, start, sleep, root, watch, previews, inherited, data, agents])}
        submit="Save"
        look="plain"
        busy={save.isPending}
        error={save.error}
        why={useWhyNot("projects.settings")}
        done={save.isSuccess ? "Saved." : undefined}
        className="grid max-w-4xl gap-x-8 gap-y-4 md:grid-cols-2"
        onSubmit={submit}
      >
        <TextField
          name="health_path"
          label="Health path"
          hint="Requested until it responds with 200 to 399. Empty: / must respond with a status below 500."
          mono
          defaultValue={health ?? ""}
          placeholder="/healthz"
        />
        <TextField
          name="port"
          label="Port"
          hint="Empty: the application listens on $PORT."
          type="number"
          min={1}
          max={65535}
          className="max-w-32"
          defaultValue={port ?? ""}
        />
        <TextField
          name="start_seconds"
          label="Start time"
          hint="Seconds until a new deployment must be healthy. Empty: the image's start period, or the platform's default."
          type="number"
          min={1}
          max={limits.start_seconds}
          className="max-w-32"
          defaultValue={start ?? ""}
        />
        <TextField
          name="sleep"
          label="Sleeps after"
          hint="Minutes without a request, at once; the next request waits until it has started. Workers and cron jobs keep it awake. Empty: never."
          type="number"
          min={1}
          max={limits.sleep_minutes}
          className="max-w-32"
          defaultValue={sleep ?? ""}
        />
        <TextField
          name="root"
          label="Root folder"
          hint="The folder of the repository that is built, such as apps/web."
          mono
          defaultValue={root ?? ""}
          placeholder="apps/web"
        />
        <Field
          name="watch"
          label="Watched paths"
          hint="One pattern a line, from the repository's root. A push that changes none of them deploys nothing."
        >
          {(field) => (
            <TextArea
              {...field}
              rows={3}
              defaultValue={(watch ?? []).join("\n")}
              placeholder={"apps/web/**\npackages/**"}
            />
          )}
        </Field>
        {project.preview === null && <PreviewFields project={project} />}
      </Form>
    </Section>
  );
}

const agentWords = { deploy: "This project", preview: "Previews only" };
const dataWords = { empty: "An empty database", branch: "A branch", masked: "A masked branch" };

function PreviewFields({
  project: { previews, preview_variables: inherited, preview_data: data, agents },
}: {
  readonly project: Project;
}) {
  return (
    <>
      <Field
        name="previews"
        label="Previews"
        hint="The branches whose pushes get a URL and data of their own, one pattern a line; * is any text. Empty: none."
      >
        {(field) => <TextArea {...field} rows={2} defaultValue={(previews ?? []).join("\n")} placeholder="feature/*" />}
      </Field>
      <Field
        name="inherited"
        label="Variables of previews"
        hint="The names of this project's variables that previews get too, one a line. Their code can read the values."
      >
        {(field) => (
          <TextArea {...field} rows={2} defaultValue={(inherited ?? []).join("\n")} placeholder="LOG_LEVEL" />
        )}
      </Field>
      <SelectField
        name="preview_data"
        label="Data of new previews"
        hint="A branch is a copy of this project's database; a masked one is changed first by the mask in berth.json."
        options={previewContents.map((each) => [each, dataWords[each]])}
        defaultValue={data}
      />
      <SelectField
        name="agents"
        label="Tokens in approval mode deploy to"
        hint="With previews only, what an agent has made goes live when a person promotes its preview."
        options={agentsMay.map((each) => [each, agentWords[each]])}
        defaultValue={agents}
      />
    </>
  );
}

function Repository({ project: { git } }: { readonly project: Project }) {
  return (
    <Section title="Repository">
      <ul className="-mt-1.5 flex flex-col">
        {[git.https, git.ssh].map((url) => (
          <li key={url} className="flex items-center gap-1">
            <Mono className="min-w-0 truncate text-muted">{url}</Mono>
            <CopyButton text={url} label="Copy the address of the repository" />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function linesOf(text: string): string[] | null {
  const lines = text.split("\n").map((line) => line.trim());
  const found = lines.filter((line) => line !== "");
  return found.length === 0 ? null : found;
}

function Danger({ project }: { readonly project: Project }) {
  const undelete = useAction("projects.undelete");
  const [deleting, setDeleting] = useState(false);
  const isDeleted = project.state === "deleted";
  return (
    <Section title="Danger zone">
      <div className="divide-y divide-line rounded-md border border-bad/40">
        {isDeleted && (
          <Row title="Undelete" text="Brings the project back with the deployment it had.">
            <Button
              busy={undelete.isPending}
              row="projects.delete"
              onClick={() => undelete.mutate({ params: { slug: project.slug } })}
            >
              Undelete
            </Button>
          </Row>
        )}
        <Row
          title={isDeleted ? "Delete for good" : "Delete this project"}
          text={
            isDeleted
              ? "Keeps one verified backup of the database and removes everything else."
              : "It stops serving at once. Everything is kept, and Undelete brings it back."
          }
        >
          <Button look="danger" row="projects.delete" onClick={() => setDeleting(true)}>
            {isDeleted ? "Delete for good" : "Delete"}
          </Button>
        </Row>
      </div>
      {undelete.error !== null && <Problem error={undelete.error} />}
      {deleting && <DeleteProject project={project} onClose={() => setDeleting(false)} />}
    </Section>
  );
}

function Row({
  title,
  text,
  children,
}: {
  readonly title: string;
  readonly text: string;
  readonly children: ReactNode;
}) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-3 p-4">
      <div className="min-w-0">
        <p className="font-medium">{title}</p>
        <p className="max-w-[70ch] text-sm text-muted">{text}</p>
      </div>
      {children}
    </div>
  );
}
