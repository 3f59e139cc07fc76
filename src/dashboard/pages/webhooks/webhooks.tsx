import { Plus, Send } from "lucide-react";
import { webhookEvents } from "../../../contract/webhooks.ts";
import { useCall, useWhyNot } from "../../data/api.ts";
import { DialogButton, DialogIconButton } from "../../ui/button.tsx";
import { List, type Column } from "../../ui/table.tsx";
import { Section, Empty } from "../../ui/page.tsx";
import { Status, Mono, Plain } from "../../ui/text.tsx";
import { createRemoval } from "../../ui/action-dialog.tsx";
import { AddWebhook } from "./add-webhook.tsx";
import { Deliveries } from "./deliveries.tsx";
import type { Webhook } from "./webhook.ts";

/** Lists the webhooks that receive the organization's events. Only its owners see this. */
export function Webhooks() {
  const why = useWhyNot("webhooks.list");
  return why === undefined ? <OwnersWebhooks /> : null;
}

const removal = createRemoval({
  row: "webhooks.delete",
  title: "Remove a channel",
  nameOf: ({ name }: Webhook) => name,
  input: ({ id }) => ({ params: { id } }),
  warning: "Nothing more is sent, and the list of its deliveries is deleted.",
});

function OwnersWebhooks() {
  const webhooks = useCall("webhooks.list", {});
  return (
    <Section
      title="Notifications"
      lead="Deployments, builds, alerts, backups, certificates and waiting approvals, sent to a chat, an e-mail address or a webhook of yours."
      actions={
        <DialogButton icon={<Plus size={15} />} row="webhooks.create" dialog={<AddWebhook />}>
          Add a channel
        </DialogButton>
      }
    >
      <List
        of={webhooks}
        caption="Notifications"
        rows={(data) => data.webhooks}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No channels yet">
            Add one to hear of failed deployments and alerts in a chat or by e-mail.
          </Empty>
        }
      />
    </Section>
  );
}

const columns: readonly Column<Webhook>[] = [
  {
    head: "Channel",
    grow: true,
    cell: (webhook) => (
      <span className="flex min-w-0 flex-col leading-4.5">
        <Plain className="truncate font-medium">{webhook.name}</Plain>
        <Mono className="truncate text-muted">{webhook.url}</Mono>
        <span className="sm:hidden">
          <WebhookState of={webhook} />
        </span>
      </span>
    ),
  },
  {
    head: "Events",
    wide: true,
    cell: ({ events }) => (
      <span className="block max-w-48 truncate text-muted" title={events.join(", ")}>
        {events.length === webhookEvents.length ? "all" : events.join(", ")}
      </span>
    ),
  },
  { head: "State", wide: true, cell: (webhook) => <WebhookState of={webhook} /> },
  {
    head: "",
    end: true,
    cell: (webhook) => (
      <span className="flex justify-end gap-1">
        <DialogIconButton label={`Deliveries of ${webhook.name}`} dialog={<Deliveries webhook={webhook} />}>
          <Send size={14} />
        </DialogIconButton>
        {removal.button(webhook)}
      </span>
    ),
  },
];

function WebhookState({ of }: { readonly of: Webhook }) {
  if (!of.confirmed) return <Status tone="warn">Not confirmed</Status>;
  if (!of.enabled) return <Status tone="off">{of.disabled_reason === null ? "Off" : "Switched off"}</Status>;
  return of.failing_since === null ? <Status tone="ok">On</Status> : <Status tone="warn">Failing</Status>;
}
