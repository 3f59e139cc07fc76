import { textOf } from "../../data/text-of.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { Field, TextArea, TextField } from "../../ui/field.tsx";

interface SetProps {
  readonly slug: string;
  /** Null for a new one. */
  readonly name: string | null;
  readonly onClose: () => void;
}

export function SetDialog({ slug, name, onClose }: SetProps) {
  return (
    <ActionDialog
      row="env.set"
      title={name === null ? "Set a variable" : `Replace ${name}`}
      submit="Save"
      input={(form) => ({
        params: { slug, key: name ?? textOf(form, "key").trim() },
        body: { value: textOf(form, "value") },
      })}
      onClose={onClose}
    >
      {name === null && (
        <TextField
          name="key"
          label="Key"
          hint="Letters, digits and underscores."
          required
          mono
          maxLength={128}
          autoComplete="off"
          placeholder="STRIPE_KEY"
        />
      )}
      <Field name="value" label="Value" hint="It is sealed when it is stored and shown nowhere afterwards.">
        {(field) => <TextArea {...field} rows={3} autoComplete="off" />}
      </Field>
    </ActionDialog>
  );
}
