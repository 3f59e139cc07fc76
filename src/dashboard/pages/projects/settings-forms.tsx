import type { ReactNode } from "react";
import type { CallInput } from "../../../contract/client.ts";
import { limits } from "../../../contract/limits.ts";
import { agentsMay, previewContents } from "../../../contract/projects.ts";
import { useAction, useWhyNot, type Project } from "../../data/api.ts";
import { textOf, Field, SelectField, TextArea, TextField } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Section } from "../../ui/page.tsx";

interface OfProject {
  readonly project: Project;
}

const fromNext = "From the next deployment on. An empty field leaves the value to berth.json or the default.";

/** The folder that is built, and the paths that deploy. */
export function BuildSettings({ project }: OfProject) {
  const { root, watch } = project;
  return (
    <SettingsForm
      project={project}
      title="Build"
      lead={fromNext}
      values={[root, watch]}
      bodyOf={(form) => ({ root: textOf(form, "root").trim() || null, watch: linesOf(textOf(form, "watch")) })}
    >
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
    </SettingsForm>
  );
}

/** How the application is started and found healthy. */
export function RuntimeSettings({ project }: OfProject) {
  const { port, health_path: health, start_seconds: start } = project;
  return (
    <SettingsForm
      project={project}
      title="Application"
      lead={fromNext}
      values={[port, health, start]}
      bodyOf={(form) => ({
        port: numberIn(form, "port"),
        health_path: textOf(form, "health_path") || null,
        start_seconds: numberIn(form, "start_seconds"),
      })}
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
    </SettingsForm>
  );
}

/** When the application sleeps. */
export function NetworkSettings({ project }: OfProject) {
  const { sleep_after_minutes: sleep } = project;
  return (
    <SettingsForm
      project={project}
      title="Sleep"
      lead="An application stops while nobody uses it, which frees its memory. A change applies at once."
      values={[sleep]}
      bodyOf={(form) => ({ sleep_after_minutes: numberIn(form, "sleep_after_minutes") })}
    >
      <TextField
        name="sleep_after_minutes"
        label="Sleeps after"
        hint="Minutes without a request; the next request waits until the application has started. Workers and cron jobs keep it awake. Empty: never."
        type="number"
        min={1}
        max={limits.sleep_minutes}
        className="max-w-32"
        defaultValue={sleep ?? ""}
      />
    </SettingsForm>
  );
}

const dataWords = { empty: "An empty database", branch: "A branch", masked: "A masked branch" };

/** Which branches get previews, and what these get. */
export function PreviewSettings({ project }: OfProject) {
  const { previews, preview_variables: inherited, preview_data: data } = project;
  return (
    <SettingsForm
      project={project}
      title="Previews"
      values={[previews, inherited, data]}
      bodyOf={(form) => ({
        previews: linesOf(textOf(form, "previews")),
        preview_variables: linesOf(textOf(form, "preview_variables")),
        preview_data: previewContents.find((each) => each === textOf(form, "preview_data")) ?? "empty",
      })}
    >
      <Field
        name="previews"
        label="Previews"
        hint="The branches whose pushes get a URL and data of their own, one pattern a line; * is any text. Empty: none."
      >
        {(field) => <TextArea {...field} rows={2} defaultValue={(previews ?? []).join("\n")} placeholder="feature/*" />}
      </Field>
      <Field
        name="preview_variables"
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
    </SettingsForm>
  );
}

const agentWords = { deploy: "This project", preview: "Previews only" };

/** Where agents deploy to. */
export function AgentSettings({ project }: OfProject) {
  const { agents } = project;
  return (
    <SettingsForm
      project={project}
      title="Agents"
      values={[agents]}
      bodyOf={(form) => ({ agents: agentsMay.find((each) => each === textOf(form, "agents")) ?? "deploy" })}
    >
      <SelectField
        name="agents"
        label="Tokens in approval mode deploy to"
        hint="With previews only, what an agent has made goes live when a person promotes its preview."
        options={agentsMay.map((each) => [each, agentWords[each]])}
        defaultValue={agents}
      />
    </SettingsForm>
  );
}

interface SettingsFormProps extends OfProject {
  readonly title: string;
  readonly lead?: string;
  /** What the fields show. */
  readonly values: readonly unknown[];
  readonly bodyOf: (form: FormData) => CallInput<"projects.settings">["body"];
  readonly children: ReactNode;
}

function SettingsForm({ project: { slug }, title, lead, values, bodyOf, children }: SettingsFormProps) {
  const save = useAction("projects.settings");
  return (
    <Section title={title} lead={lead}>
      <Form
        // A new key shows what another user has saved meanwhile.
        key={JSON.stringify(values)}
        submit="Save"
        look="plain"
        why={useWhyNot("projects.settings")}
        done={save.isSuccess ? "Saved." : undefined}
        className="grid max-w-4xl gap-x-8 gap-y-4 md:grid-cols-2"
        onSubmit={(form) => save.mutateAsync({ params: { slug }, body: bodyOf(form) })}
      >
        {children}
      </Form>
    </Section>
  );
}

function numberIn(form: FormData, name: string): number | null {
  return textOf(form, name) === "" ? null : Number(textOf(form, name));
}

function linesOf(text: string): string[] | null {
  const lines = text.split("\n").map((line) => line.trim());
  const found = lines.filter((line) => line !== "");
  return found.length === 0 ? null : found;
}
