import { newId } from "../../kit/ids.ts";
import type { Message, Notifier } from "../../ports/notifier.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Vault } from "../../store/vault.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { insertNotifications } from "./queries.ts";

export * from "./queries.ts";

export interface Sending {
  readonly vault: Vault;
  readonly wakeups: Wakeups;
  readonly ports: { readonly notifiers: readonly Notifier[] };
}

export interface NewMessage extends Pick<Message, "kind" | "subject" | "text" | "url"> {
  /** Null for a message about the platform itself. */
  readonly org_id: string | null;
  readonly created_at: Date;
  /** After this time the message is useless. */
  readonly expires_at: Date;
}

/** Queues a message for every notifier, in a row of its own that is retried until it expires; delivery starts after the commit. */
export async function sendMessage(sending: Sending, tx: Tx | Db, message: NewMessage): Promise<void> {
  const { org_id, kind, subject, text, url, created_at, expires_at } = message;
  const rows = sending.ports.notifiers.map(({ name: notifier }) => {
    const id = newId("ntf", created_at.getTime());
    const sealed_message = sending.vault.seal(id, secretName, JSON.stringify({ subject, text, url }));
    return { id, org_id, notifier, kind, sealed_message, created_at, expires_at };
  });
  if (rows.length === 0) return;
  await insertNotifications(tx, rows);
  await sending.wakeups.send(tx, "notifications");
}

export function openMessage(
  vault: Vault,
  row: { readonly id: string; readonly sealed_message: Buffer },
): Pick<Message, "subject" | "text" | "url"> {
  return JSON.parse(vault.open(row.id, secretName, row.sealed_message)) as Pick<Message, "subject" | "text" | "url">;
}

const secretName = "notification";
