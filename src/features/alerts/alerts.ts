import { isGood } from "../../contract/status.ts";
import { newId } from "../../kit/ids.ts";
import type { Tx } from "../../store/database.ts";
import { sendMessage, type Sending } from "../notifications/notifications.ts";
import { deleteOldAlerts, insertAlert, lastResolved, openAlerts, updateAlert, type AlertRow } from "./queries.ts";
import { calledFor, isWorse, messageOf, tellAt, type AlertKey, type Patience, type ObservedStatus } from "./rules.ts";

export { countOpen } from "./queries.ts";
export type { Patience } from "./rules.ts";

export interface Alerting extends Sending {
  readonly settings: { readonly monitors: { readonly coolDownMs: number } };
}

type SeenThing = AlertKey & ObservedStatus & { readonly detail: string; readonly hint: string | null };

/** What one check watches, in its current state. `gone` lists things that are no longer bad or no longer exist. */
export interface Watched {
  readonly patience: Patience;
  readonly findings: readonly { readonly subject: string; readonly quiet?: boolean }[];
  readonly rows: readonly SeenThing[];
  readonly gone: readonly AlertKey[];
}

/**
 * Opens alerts for what has been bad for long enough, raises their severity, resolves those that are over, and notifies the operator of all
 * changes in one message. Callers must not run it concurrently, and must call it in the transaction that stores the observations.
 */
export async function raiseAlerts(
  platform: Alerting,
  tx: Tx,
  seen: { readonly watched: readonly Watched[]; readonly now: Date },
): Promise<void> {
  const open = new Map((await openAlerts(tx)).map((alert) => [keyOf(alert), alert]));
  const resolved: AlertRow[] = [];
  const resolve = async (thing: AlertKey) => {
    const alert = open.get(keyOf(thing));
    if (alert === undefined) return;
    await updateAlert(tx, alert.id, { resolved_at: seen.now });
    if (alert.told_severity !== null) resolved.push(alert);
  };
  for (const { patience, findings, rows, gone } of seen.watched) {
    const quiet = new Set(findings.filter((finding) => finding.quiet).map(({ subject }) => subject));
    for (const row of rows) {
      const severity = quiet.has(row.subject) ? undefined : calledFor(row, patience, seen.now);
      if (severity !== undefined)
        await raise({ platform, tx, now: seen.now }, open.get(keyOf(row)), { ...row, severity });
      else if (isGood(row.status) || quiet.has(row.subject)) await resolve(row);
    }
    for (const thing of gone) await resolve(thing);
  }
  await tell({ platform, tx, now: seen.now }, resolved);
  await deleteOldAlerts(tx);
}

interface Raising {
  readonly platform: Alerting;
  readonly tx: Tx;
  readonly now: Date;
}

type Called = SeenThing & { readonly severity: AlertRow["severity"] };

async function raise({ platform, tx, now }: Raising, alert: AlertRow | undefined, called: Called): Promise<void> {
  const { name, machine, subject, severity, detail: summary, hint } = called;
  if (alert === undefined) {
    const notify_at = tellAt(await lastResolved(tx, called), platform.settings.monitors.coolDownMs, now);
    const id = newId("alt", now.getTime());
    return insertAlert(tx, { id, name, machine, subject, severity, summary, hint, opened_at: now, notify_at });
  }
  // An alert's severity never goes down while it is open.
  const graver = isWorse(alert.severity, severity) ? severity : alert.severity;
  if (graver === alert.severity && summary === alert.summary) return;
  await updateAlert(tx, alert.id, { severity: graver, summary, hint });
}

// Delivery stops after a day; by then the operator sees the alert on the page.
const deliverMs = 24 * 60 * 60 * 1000;

/** Sends one message about open alerts that are not announced yet or have become worse, and about announced alerts that were resolved. */
async function tell({ platform, tx, now }: Raising, resolved: readonly AlertRow[]): Promise<void> {
  const news = (await openAlerts(tx)).filter(
    (alert) => isWorse(alert.told_severity, alert.severity) && Date.parse(alert.notify_at) <= now.getTime(),
  );
  const message = messageOf(news, resolved);
  if (message === undefined) return;
  for (const { id, severity } of news) await updateAlert(tx, id, { told_severity: severity });
  const expires_at = new Date(now.getTime() + deliverMs);
  await sendMessage(platform, tx, { ...message, org_id: null, created_at: now, expires_at });
}

function keyOf({ name, machine, subject }: AlertKey): string {
  return `${name}\n${machine}\n${subject}`;
}
