import { Plus, Send } from "lucide-react";
import { useState } from "react";
import { webhookEvents } from "../../../contract/webhooks.ts";
import { useCall } from "../../data/api.ts";
import { useWhyNot } from "../../data/me.ts";
import { ConfirmAction } from "../../ui/action-dialog.tsx";
import { Button, IconButton, RemoveButton } from "../../ui/button.tsx";
import { List } from "../../ui/list.tsx";
import { Section } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { type Column } from "../../ui/table.tsx";
import { Mono, Plain } from "../../ui/text.tsx";
import { Empty } from "../../ui/view.tsx";
import { AddWebhook } from "./add-webhook.tsx";
import { Deliveries } from "./deliveries.tsx";
import type { Webhook } from "./webhook.ts";

/** Lists the webhooks that receive the organization's events. Only its owners see this. */
export function Webhooks() {
  const why = useWhyNot("webhooks.list");
  return why === undefined ? <OwnersWebhooks /> : null;
}

function OwnersWebhooks() {
  const webhooks = useCall("webhooks.list", {});
  const [adding, setAdding] = useState(false);
  const [shown, setShown] = useState<Webhook>();
  const [removing, setRemoving] = useState<Webhook>();
  return (
    <Section
      title="Webhooks"
      lead="Deployments, builds, alerts, backups, certificates and waiting approvals, sent to other services."
      actions={
        <Button icon={<Plus size={15} />} row="webhooks.create" onClick={() => setAdding(true)}>
          Add a webhook
        </Button>
      }
    >
      <List
        of={webhooks}
        caption="Webhooks"
        rows={(data) => data.webhooks}
        columns={columnsFor({ onShow: setShown, onRemove: setRemoving })}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No webhooks yet">Berth can send the events here to a chat or to a service of yours.</Empty>
        }
      />
      {adding && <AddWebhook onClose={() => setAdding(false)} />}
      {shown !== undefined && <Deliveries webhook={shown} onClose={() => setShown(undefined)} />}
      {removing !== undefined && (
        <ConfirmAction
          row="webhooks.delete"
          title="Remove a webhook"
          submit="Remove"
          typed={removing.name}
          input={{ params: { id: removing.id } }}
          onClose={() => setRemoving(undefined)}
        >
          Nothing more is sent, and the list of its deliveries is deleted.
        </ConfirmAction>
      )}
    </Section>
  );
}

interface Acts {
  readonly onShow: (webhook: Webhook) => void;
  readonly onRemove: (webhook: Webhook) => void;
}

function columnsFor({ onShow, onRemove }: Acts): readonly Column<Webhook>[] {
  return [
    {
      head: "Webhook",
      grow: true,
      cell: (webhook) => (
        <span className="flex min-w-0 flex-col leading-4.5">
          <span className="truncate font-medium">
            <Plain>{webhook.name}</Plain>
          </span>
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
          <IconButton label={`Deliveries of ${webhook.name}`} onClick={() => onShow(webhook)}>
            <Send size={14} />
          </IconButton>
          <RemoveButton row="webhooks.delete" label={`Remove ${webhook.name}`} onClick={() => onRemove(webhook)} />
        </span>
      ),
    },
  ];
}

function WebhookState({ of }: { readonly of: Webhook }) {
  if (!of.confirmed) return <Status tone="warn">Not confirmed</Status>;
  if (!of.enabled) return <Status tone="off">{of.disabled_reason === null ? "Off" : "Switched off"}</Status>;
  return of.failing_since === null ? <Status tone="ok">On</Status> : <Status tone="warn">Failing</Status>;
}
