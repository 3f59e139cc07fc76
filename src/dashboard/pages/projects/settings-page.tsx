import { useState, type FormEvent, type ReactNode } from "react";
import { useAction } from "../../data/api.ts";
import { textOf } from "../../data/text-of.ts";
import { useWhyNot } from "../../data/me.ts";
import { useProject, type Project } from "../../data/project.ts";
import { Button } from "../../ui/button.tsx";
import { Field, Input, TextArea } from "../../ui/field.tsx";
import { Page, Section } from "../../ui/page.tsx";
import { fieldProblem, Problem } from "../../ui/problem.tsx";
import { View } from "../../ui/view.tsx";
import { DeleteProject } from "./delete-project.tsx";
import { Maintenance } from "./maintenance.tsx";
import { SourceSettings } from "./source-settings.tsx";

export function SettingsPage() {
  const project = useProject();
  return (
    <View of={project}>
      {(data) => (
        <Page title="Settings">
          <Overrides key={data.updated_at} project={data} />
          {data.state === "active" && <Maintenance project={data} />}
          {data.state === "active" && <SourceSettings project={data} />}
          <Danger project={data} />
        </Page>
      )}
    </View>
  );
}

function Overrides({ project }: { readonly project: Project }) {
  const save = useAction("projects.settings");
  const why = useWhyNot("projects.settings");
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    if (save.isPending || why !== undefined) return;
    const port = textOf(form, "port");
    save.mutate({
      params: { slug: project.slug },
      body: {
        port: port === "" ? null : Number(port),
        health_path: textOf(form, "health") || null,
        root: textOf(form, "root").trim() || null,
        watch: linesOf(textOf(form, "watch")),
      },
    });
  };
  return (
    <Section
      title="Application"
      lead="From the next deployment on. An empty field leaves the value to berth.json or the default."
    >
      <form onSubmit={submit} className="grid max-w-4xl gap-x-8 gap-y-4 md:grid-cols-2">
        <Field
          label="Health path"
          hint="Asked for until it answers 200 to 399. Empty: the port accepts, and answers below 500."
          error={fieldProblem(save.error, "health_path")}
        >
          {(ids) => (
            <Input {...ids} name="health" mono defaultValue={project.health_path ?? ""} placeholder="/healthz" />
          )}
        </Field>
        <Field label="Port" hint="Empty: the application listens on $PORT." error={fieldProblem(save.error, "port")}>
          {(ids) => (
            <Input
              {...ids}
              name="port"
              type="number"
              min={1}
              max={65535}
              className="max-w-32"
              defaultValue={project.port ?? ""}
            />
          )}
        </Field>
        <Field
          label="Root folder"
          hint="The folder of the repository that is built, such as apps/web."
          error={fieldProblem(save.error, "root")}
        >
          {(ids) => <Input {...ids} name="root" mono defaultValue={project.root ?? ""} placeholder="apps/web" />}
        </Field>
        <Field
          label="Watched paths"
          hint="One pattern a line, from the repository's root. A push that changes none of them deploys nothing."
          error={fieldProblem(save.error, "watch")}
        >
          {(ids) => (
            <TextArea
              {...ids}
              name="watch"
              rows={3}
              defaultValue={(project.watch ?? []).join("\n")}
              placeholder={"apps/web/**\npackages/**"}
            />
          )}
        </Field>
        {save.error !== null && (
          <div className="md:col-span-2">
            <Problem error={save.error} />
          </div>
        )}
        <div className="flex items-center gap-3 md:col-span-2">
          <Button type="submit" busy={save.isPending} why={why}>
            Save
          </Button>
          <span role="status" className="text-sm text-ok">
            {save.isSuccess ? "Saved." : ""}
          </span>
        </div>
      </form>
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
  const why = useWhyNot("projects.delete");
  const isDeleted = project.state === "deleted";
  return (
    <Section title="Danger zone">
      <div className="divide-y divide-line rounded-md border border-bad/40">
        {isDeleted && (
          <Row title="Undelete" text="Brings the project back with the deployment it had.">
            <Button
              busy={undelete.isPending}
              why={why}
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
              ? "Keeps one verified backup and removes everything else."
              : "It stops serving at once. Code, database, backups, domains and variables are kept, and it can be undeleted."
          }
        >
          <Button look="danger" why={why} onClick={() => setDeleting(true)}>
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
