import assert from "node:assert/strict";
import { openMessage } from "../../src/features/notifications/notifications.ts";
import type { Notifier } from "../../src/ports/notifier.ts";
import type { TestApi } from "./test-platform.ts";

/** A channel without a deliverer: tests read its queued messages from the rows. */
export const quietNotifier: Notifier = { name: "quiet", deliver: async () => ({ outcome: "delivered" }) };

/** Path of the decision link that the operator receives for an approval. */
export async function decisionPath(api: TestApi, approvalId: string): Promise<string> {
  const rows = await api.database.db.selectFrom("notification").selectAll().orderBy("created_at").execute();
  const approval = await api.database.db
    .selectFrom("approval")
    .select("created_at")
    .where("id", "=", approvalId)
    .executeTakeFirstOrThrow();
  const row = rows.find((each) => each.created_at === approval.created_at && each.sealed_message !== null);
  assert.ok(row, "no notification was queued for the approval");
  const { url } = openMessage(api.platform.vault, { id: row.id, sealed_message: row.sealed_message as Buffer });
  return new URL(url ?? "").pathname;
}

/** Opens the decision page and submits one of its buttons, as a browser does. */
export async function decideBy(api: TestApi, approvalId: string, choice: "approved" | "denied") {
  const path = await decisionPath(api, approvalId);
  const page = await fetch(`${api.baseUrl}${path}`);
  const nonce = nonceIn(await page.text());
  return pressButton(api, path, { choice, nonce });
}

/** Reads the nonce from a page's form. */
export function nonceIn(html: string): string {
  return /name="nonce" value="([\w-]+)"/.exec(html)?.[1] ?? "";
}

export async function pressButton(
  api: TestApi,
  path: string,
  form: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = { origin: api.platform.addresses.controlUrl },
) {
  const response = await fetch(`${api.baseUrl}${path}`, { method: "POST", body: new URLSearchParams(form), headers });
  return { status: response.status, text: await response.text() };
}
