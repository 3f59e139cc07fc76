import { useState } from "react";
import { webhookEvents, webhookFormats, type WebhookFormat } from "../../../contract/webhooks.ts";
import { useAction } from "../../data/api.ts";
import { textOf } from "../../data/text-of.ts";
import { Choice } from "../../ui/choice.tsx";
import { FormDialog } from "../../ui/dialog.tsx";
import { Checkbox, Field, Input } from "../../ui/field.tsx";
import { fieldProblem } from "../../ui/problem.tsx";
import { SecretOnce } from "../../ui/secret-once.tsx";

/** A new webhook; the secret that checks its signatures is shown once. */
export function AddWebhook({ onClose }: { readonly onClose: () => void }) {
  const create = useAction("webhooks.create");
  const [format, setFormat] = useState<WebhookFormat>("json");
  if (create.data !== undefined)
    return <SecretOnce title="The webhook's secret" text={create.data.secret} onClose={onClose} />;
  const submit = (form: FormData) =>
    create.mutate({
      body: {
        name: textOf(form, "name"),
        url: textOf(form, "url").trim(),
        format,
        events: webhookEvents.filter((kind) => form.has(kind)),
      },
    });
  return (
    <FormDialog
      title="Add a webhook"
      submit="Add"
      busy={create.isPending}
      error={create.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Name" error={fieldProblem(create.error, "name")}>
        {(ids) => <Input {...ids} name="name" required autoFocus maxLength={100} placeholder="chat" />}
      </Field>
      <Field label="Address" error={fieldProblem(create.error, "url")}>
        {(ids) => <Input {...ids} name="url" type="url" required maxLength={2048} placeholder="https://…" />}
      </Field>
      <div className="flex flex-col gap-1.5">
        <span className="text-sm font-medium">Format</span>
        <Choice label="Format" options={webhookFormats} value={format} onChange={setFormat} />
      </div>
      <fieldset className="grid grid-cols-2 gap-x-4 gap-y-1.5 rounded-md border border-line p-3 sm:grid-cols-3">
        <legend className="sr-only">Events</legend>
        {webhookEvents.map((kind) => (
          <Checkbox key={kind} name={kind} label={kind} defaultChecked />
        ))}
      </fieldset>
    </FormDialog>
  );
}
