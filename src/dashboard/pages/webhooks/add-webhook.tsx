import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { webhookEvents, webhookFormats, type WebhookFormat } from "../../../contract/webhooks.ts";
import { textOf, Checkbox, SelectField, TextField } from "../../ui/field.tsx";
import { ActionDialog } from "../../ui/action-dialog.tsx";

const formatNames: Record<WebhookFormat, string> = {
  json: "Webhook",
  slack: "Slack",
  discord: "Discord",
  telegram: "Telegram",
  ntfy: "ntfy",
  teams: "Microsoft Teams",
  email: "E-mail",
};
const examples: Record<WebhookFormat, string> = {
  json: "https://example.com/hooks/berth",
  slack: "https://hooks.slack.com/services/…",
  discord: "https://discord.com/api/webhooks/…",
  telegram: "https://api.telegram.org/bot<token>/sendMessage?chat_id=<chat>",
  ntfy: "https://ntfy.sh/<topic>",
  teams: "https://….logic.azure.com/workflows/…",
  email: "ops@example.com",
};
const hints: Record<WebhookFormat, string> = {
  json: "An https:// address of yours. Each event arrives there as a signed POST with a JSON body.",
  slack: "The address of an incoming webhook, which Slack shows in the settings of your app.",
  discord: "The address of a webhook, which Discord shows in the settings of the channel.",
  telegram: "The address of your bot's sendMessage, with its token and the number of the chat.",
  ntfy: "The address of a topic, on ntfy.sh or on a server of yours.",
  teams: "The address that Teams shows for the workflow “Send webhook alerts to a channel”.",
  email: "Berth mails a code to it first. Events follow once you have entered that code here.",
};
const eventNames: Record<(typeof webhookEvents)[number], string> = {
  deployment: "Deployments",
  build: "Builds",
  alert: "Alerts",
  backup: "Backups",
  certificate: "Certificates",
  approval: "Approvals",
};

/** Adds a webhook and shows once the secret that verifies its signatures. For an e-mail address, Berth mails a code instead. */
export function AddWebhook() {
  const [format, setFormat] = useState<WebhookFormat>("json");
  const isMail = format === "email";
  return (
    <ActionDialog
      row="webhooks.create"
      title="Add a channel"
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
    >
      <SelectField
        name="format"
        label="Channel"
        value={format}
        onChange={({ target }) => setFormat(webhookFormats.find((each) => each === target.value) ?? "json")}
        options={webhookFormats.map((each) => [each, formatNames[each]])}
      />
      <TextField name="name" label="Name" required maxLength={100} placeholder="chat" />
      <TextField
        key={isMail ? "mail" : "web"}
        name="url"
        label={isMail ? "E-mail address" : "URL"}
        type={isMail ? "email" : "url"}
        required
        maxLength={isMail ? 254 : 2048}
        placeholder={examples[format]}
        hint={hints[format]}
      />
      <fieldset>
        <legend className="mb-1.5 text-sm font-medium">Events to send</legend>
        <div className="grid grid-cols-2 gap-x-4 gap-y-1.5 rounded-md border border-line p-3 sm:grid-cols-3">
          {webhookEvents.map((kind) => (
            <Checkbox key={kind} name={kind} label={eventNames[kind]} defaultChecked />
          ))}
        </div>
      </fieldset>
    </ActionDialog>
  );
}
