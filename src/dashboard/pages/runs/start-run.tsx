import { useNavigate } from "@tanstack/react-router";
import { limits } from "../../../contract/limits.ts";
import { textOf, NumberField, TextField } from "../../ui/field.tsx";
import { ActionDialog } from "../../ui/action-dialog.tsx";

export function StartRun({ slug }: { readonly slug: string }) {
  const navigate = useNavigate();
  return (
    <ActionDialog
      row="runs.create"
      title="Run a command"
      submit="Run"
      input={(form) => ({
        params: { slug },
        // Don't wait for the end: the run's page shows the output while it is written.
        body: {
          command: textOf(form, "command"),
          timeout_seconds: Number(textOf(form, "timeout_seconds")) * 60,
          wait_seconds: 0,
        },
      })}
      onDone={({ run }) =>
        void navigate({ to: "/projects/$slug/runs/$number", params: { slug, number: `${run.number}` } })
      }
    >
      <TextField
        name="command"
        label="Command"
        hint="A line for the shell, in the application's folder, with the variables of the active deployment."
        required
        mono
        maxLength={limits.command_characters}
        autoComplete="off"
        spellCheck={false}
        placeholder="node migrate.js"
      />
      <NumberField name="timeout_seconds" label="Time limit in minutes" min={1} max={1440} defaultValue={10} />
    </ActionDialog>
  );
}
