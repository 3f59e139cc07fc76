import { useState } from "react";
import { useAction } from "../../data/api.ts";
import { textOf } from "../../data/text-of.ts";
import { FormDialog } from "../../ui/dialog.tsx";
import { Checkbox, Field, Input } from "../../ui/field.tsx";
import { fieldProblem } from "../../ui/problem.tsx";
import type { Job } from "./cron-page.tsx";
import { NextRuns } from "./next-runs.tsx";

interface JobProps {
  readonly slug: string;
  /** Null for a new one. */
  readonly job: Job | null;
  readonly onClose: () => void;
}

export function JobDialog({ slug, job, onClose }: JobProps) {
  const set = useAction("cron.set");
  const [schedule, setSchedule] = useState(job?.schedule ?? "");
  const submit = (form: FormData) =>
    set.mutate(
      {
        params: { slug, name: job?.name ?? textOf(form, "name").trim() },
        body: { schedule, path: textOf(form, "path").trim(), enabled: form.has("enabled") },
      },
      { onSuccess: onClose },
    );
  return (
    <FormDialog
      title={job === null ? "New job" : `Edit ${job.name}`}
      submit="Save"
      busy={set.isPending}
      error={set.error}
      onSubmit={submit}
      onClose={onClose}
    >
      {job === null && (
        <Field label="Name" error={fieldProblem(set.error, "name")}>
          {(ids) => <Input {...ids} name="name" required autoFocus mono maxLength={64} placeholder="clean-up" />}
        </Field>
      )}
      <Field label="Schedule" hint={<NextRuns schedule={schedule} />} error={fieldProblem(set.error, "schedule")}>
        {(ids) => (
          <Input
            {...ids}
            required
            mono
            value={schedule}
            onChange={(event) => setSchedule(event.target.value)}
            placeholder="0 3 * * *"
          />
        )}
      </Field>
      <Field label="Path" error={fieldProblem(set.error, "path")}>
        {(ids) => <Input {...ids} name="path" required mono defaultValue={job?.path ?? "/"} />}
      </Field>
      <Checkbox name="enabled" label="Enabled" defaultChecked={job?.enabled ?? true} />
    </FormDialog>
  );
}
