import { useNavigate } from "@tanstack/react-router";
import { limits } from "../../../contract/limits.ts";
import { useAction } from "../../data/api.ts";
import { textOf } from "../../data/text-of.ts";
import { FormDialog } from "../../ui/dialog.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { fieldProblem } from "../../ui/problem.tsx";

/** Starts a command and leads to its output. */
export function StartRun({ slug, onClose }: { readonly slug: string; readonly onClose: () => void }) {
  const start = useAction("runs.create");
  const navigate = useNavigate();
  const submit = (form: FormData) =>
    start.mutate(
      {
        params: { slug },
        // The page of the run shows its output as it is written, so the answer need not wait for the end.
        body: {
          command: textOf(form, "command"),
          timeout_seconds: Number(textOf(form, "minutes")) * 60,
          wait_seconds: 0,
        },
      },
      {
        onSuccess: ({ run }) =>
          void navigate({ to: "/projects/$slug/runs/$number", params: { slug, number: `${run.number}` } }),
      },
    );
  return (
    <FormDialog
      title="Run a command"
      submit="Run"
      busy={start.isPending}
      error={start.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field
        label="Command"
        hint="A line for the shell, in the application's folder, with the variables of the active deployment."
        error={fieldProblem(start.error, "command")}
      >
        {(ids) => (
          <Input
            {...ids}
            name="command"
            required
            autoFocus
            mono
            maxLength={limits.command_characters}
            autoComplete="off"
            spellCheck={false}
            placeholder="node migrate.js"
          />
        )}
      </Field>
      <Field label="Time limit in minutes" error={fieldProblem(start.error, "timeout_seconds")}>
        {(ids) => (
          <Input
            {...ids}
            name="minutes"
            type="number"
            min={1}
            max={1440}
            defaultValue={10}
            required
            className="max-w-32"
          />
        )}
      </Field>
    </FormDialog>
  );
}
