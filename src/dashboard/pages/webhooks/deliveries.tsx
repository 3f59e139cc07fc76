import type { Answer } from "../../../contract/client.ts";
import { useAction, useCall, useWhyNot } from "../../data/api.ts";
import { visible } from "../../data/format.ts";
import { textOf, TextField } from "../../ui/field.tsx";
import { ActionButton } from "../../ui/action-button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useDialog } from "../../ui/dialogs.tsx";
import { Form } from "../../ui/form.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Empty } from "../../ui/page.tsx";
import { Status, Plain } from "../../ui/text.tsx";
import type { Webhook } from "./webhook.ts";

type Delivery = Answer<"webhooks.deliveries">["deliveries"][number];

/** Lists a webhook's deliveries with the answer to the last attempt; also tests the webhook and switches it on and off. */
export function Deliveries({ webhook }: { readonly webhook: Webhook }) {
  const params = { id: webhook.id };
  const deliveries = useCall("webhooks.deliveries", { params });
  const { close } = useDialog();
  return (
    <Dialog title={`Deliveries: ${webhook.name}`} shape="wide">
      <div className="flex flex-col gap-4">
        {!webhook.confirmed && <Confirm id={webhook.id} onDone={close} />}
        {webhook.disabled_reason !== null && <p className="text-sm text-muted">{webhook.disabled_reason}</p>}
        <div className="flex gap-2">
          <ActionButton
            look="primary"
            row="webhooks.test"
            label={webhook.confirmed ? "Send a test" : "Mail the code again"}
            input={{ params }}
          />
          {webhook.confirmed && (
            <ActionButton
              row="webhooks.update"
              label={webhook.enabled ? "Switch off" : "Switch on"}
              input={{ params, body: { enabled: !webhook.enabled } }}
              onDone={close}
            />
          )}
        </div>
        <List
          of={deliveries}
          caption="Deliveries"
          rows={(data) => data.deliveries}
          columns={columns}
          keyOf={({ id }) => id}
          empty={<Empty title="Nothing was sent yet">Events are listed for 14 days.</Empty>}
        />
      </div>
    </Dialog>
  );
}

/** Asks for the code that was mailed to the webhook's address. */
function Confirm({ id, onDone }: { readonly id: string; readonly onDone: () => void }) {
  const update = useAction("webhooks.update");
  const why = useWhyNot("webhooks.update");
  const confirm = (form: FormData) =>
    update.mutateAsync({ params: { id }, body: { code: textOf(form, "code") } }).then(onDone);
  return (
    <Form inline submit="Confirm" why={why} onSubmit={confirm}>
      <TextField name="code" label="Code that was mailed to the address" required maxLength={100} mono />
    </Form>
  );
}

const tones = { delivered: "ok", queued: "warn", failed: "bad", dropped: "bad" } as const;

const columns: readonly Column<Delivery>[] = [
  {
    head: "Event",
    grow: true,
    cell: (delivery) => (
      <span className="flex min-w-0 flex-col leading-4.5">
        <Plain className="truncate">{delivery.event}</Plain>
        <span className="truncate text-xs text-faint" title={visible(answerOf(delivery))}>
          <Plain>{answerOf(delivery)}</Plain>
        </span>
      </span>
    ),
  },
  { head: "Status", cell: ({ status }) => <Status tone={tones[status]}>{status}</Status> },
  timeColumn("When", (row) => row.created_at),
];

function answerOf({ attempts }: Delivery): string {
  const last = attempts.at(-1);
  if (last === undefined) return "";
  return last.reason ?? `${last.http_status ?? "Delivered"} in ${last.duration_ms} ms`;
}
