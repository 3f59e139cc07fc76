import { useAction } from "../../data/api.ts";
import { textOf } from "../../data/text-of.ts";
import { FormDialog } from "../../ui/dialog.tsx";
import { Field, Input, TextArea } from "../../ui/field.tsx";
import { fieldProblem } from "../../ui/problem.tsx";

interface SetProps {
  readonly slug: string;
  /** Null for a new one. */
  readonly name: string | null;
  readonly onClose: () => void;
}

export function SetDialog({ slug, name, onClose }: SetProps) {
  const set = useAction("env.set");
  const submit = (form: FormData) =>
    set.mutate(
      { params: { slug, key: name ?? textOf(form, "key").trim() }, body: { value: textOf(form, "value") } },
      { onSuccess: onClose },
    );
  return (
    <FormDialog
      title={name === null ? "Set a variable" : `Replace ${name}`}
      submit="Save"
      busy={set.isPending}
      error={set.error}
      onSubmit={submit}
      onClose={onClose}
    >
      {name === null && (
        <Field label="Key" hint="Letters, digits and underscores." error={fieldProblem(set.error, "key")}>
          {(ids) => (
            <Input
              {...ids}
              name="key"
              autoFocus
              required
              mono
              maxLength={128}
              autoComplete="off"
              placeholder="STRIPE_KEY"
            />
          )}
        </Field>
      )}
      <Field
        label="Value"
        hint="It is sealed when it is stored and shown nowhere afterwards."
        error={fieldProblem(set.error, "value")}
      >
        {(ids) => <TextArea {...ids} name="value" rows={3} autoComplete="off" autoFocus={name !== null} />}
      </Field>
    </FormDialog>
  );
}
