import { useState } from "react";
import { textOf, Checkbox, TextField } from "../../ui/field.tsx";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { Choice } from "../../ui/choice.tsx";
import type { Job } from "./job.ts";
import { NextRuns } from "./next-runs.tsx";

interface JobProps {
  readonly slug: string;
  /** Null to create a job. */
  readonly job: Job | null;
}

export function JobDialog({ slug, job }: JobProps) {
  const [schedule, setSchedule] = useState(job?.schedule ?? "");
  const [work, setWork] = useState<"path" | "command">((job?.command ?? null) === null ? "path" : "command");
  return (
    <ActionDialog
      row="cron.set"
      title={job === null ? "New job" : `Edit ${job.name}`}
      submit="Save"
      input={(form) => ({
        params: { slug, name: job?.name ?? textOf(form, "name").trim() },
        body: { schedule, [work]: textOf(form, "work").trim(), enabled: form.has("enabled") },
      })}
    >
      {job === null && <TextField name="name" label="Name" required mono maxLength={64} placeholder="clean-up" />}
      <TextField
        name="schedule"
        label="Schedule"
        hint={<NextRuns schedule={schedule} />}
        required
        mono
        value={schedule}
        onChange={(event) => setSchedule(event.target.value)}
        placeholder="0 3 * * *"
      />
      <Choice
        label="What it does"
        options={["path", "command"]}
        words={{ path: "Calls a path", command: "Runs a command" }}
        value={work}
        onChange={setWork}
      />
      <TextField
        key={work}
        name="work"
        label={work === "path" ? "Path" : "Command"}
        hint={
          work === "path" ? "A GET request to the application." : "A shell command line in the application's image."
        }
        required
        mono
        defaultValue={job?.[work] ?? (work === "path" ? "/" : "")}
      />
      <Checkbox name="enabled" label="Enabled" defaultChecked={job?.enabled ?? true} />
    </ActionDialog>
  );
}
