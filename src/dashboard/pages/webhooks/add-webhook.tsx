import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { webhookEvents, webhookFormats, type WebhookFormat } from "../../../contract/webhooks.ts";
import { textOf } from "../../data/text-of.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { Choice } from "../../ui/choice.tsx";
import { Checkbox, TextField } from "../../ui/field.tsx";

/** Adds a webhook and shows once the secret that verifies its signatures. For an e-mail address, Berth mails a code instead. */
export function AddWebhook({ onClose }: { readonly onClose: () => void }) {
  const [format, setFormat] = useState<WebhookFormat>("json");
  const isMail = format === "email";
  return (
    <ActionDialog
      row="webhooks.create"
      title="Add a webhook"
      submit="Add"
      input={(form) => ({
        body: {
          name: textOf(form, "name"),
          url: `${isMail ? "mailto:" : ""}${textOf(form, "url").trim()}`,
          format,
          events: webhookEvents.filter((kind) => form.has(kind)),
        },
      })}
      {...(isMail
        ? {}
        : { secret: { title: "The webhook's secret", of: (answer: Answer<"webhooks.create">) => answer.secret } })}
      onClose={onClose}
    >
      <TextField name="name" label="Name" required maxLength={100} placeholder="chat" />
      <TextField
        key={isMail ? "mail" : "web"}
        name="url"
        label="Address"
        type={isMail ? "email" : "url"}
        required
        maxLength={isMail ? 254 : 2048}
        placeholder={isMail ? "ops@example.com" : "https://…"}
        hint={isMail ? "It is mailed a code; events follow once you have entered that code here." : undefined}
      />
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
    </ActionDialog>
  );
}
