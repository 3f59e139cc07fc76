import * as notifications from "../../features/notifications/notifications.ts";
import type { Notifier } from "../../ports/notifier.ts";
import type { Lease } from "../../store/leases.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedTask } from "../leased-work.ts";

// The first retries come soon, because people are waiting; a server that has been down for hours is tried rarely.
const pauseMs = { first: 5000, most: 15 * 60_000 };
const concurrent = 4;

/** Delivers messages to the operator's channels, and retries until they are delivered or expired. */
export function notificationsTask(platform: Platform, again: () => void): Task {
  const { db, owner, log } = platform;
  const byName = new Map<string, Notifier>(platform.ports.notifiers.map((notifier) => [notifier.name, notifier]));
  const names = [...byName.keys()];

  async function deliver(row: notifications.TakenNotification, lease: Lease, signal: AbortSignal): Promise<void> {
    const notifier = byName.get(row.notifier) as Notifier;
    const { id, kind, created_at } = row;
    const said = notifications.openMessage(platform.vault, { id, sealed_message: row.sealed_message });
    const delivery = await notifier.deliver({ ...said, id, kind, created_at }, signal);
    if (delivery.outcome === "delivered") return notifications.markDelivered(db, lease);
    log.warn(
      { notifier: row.notifier, kind, attempt: row.attempts, reason: delivery.reason },
      "a message was not delivered",
    );
    await notifications.putOff(db, lease, { reason: delivery.reason, pauseMs: pauseAfter(row.attempts) });
  }

  return createLeasedTask(platform, again, {
    name: "notifications",
    periodMs: 15_000,
    topics: ["notifications"],
    table: "notification",
    limit: concurrent,
    take: (inProgress) => notifications.takeNotification(db, owner, names, inProgress),
    work: deliver,
    broken: (row, lease) =>
      notifications.putOff(db, lease, {
        reason: "The platform failed with an internal error; its log has the details.",
        pauseMs: pauseAfter(row.attempts),
      }),
    async before() {
      for (const { id, ...given } of await notifications.endNotifications(db))
        log.error({ message_id: id, ...given }, "gave up on a message");
    },
    async after() {
      const waitMs = await notifications.nextDueMs(db);
      return { againMs: waitMs === undefined ? undefined : Math.max(250, waitMs) };
    },
  });
}

function pauseAfter(attempts: number): number {
  return Math.min(pauseMs.first * 2 ** Math.min(attempts - 1, 20), pauseMs.most);
}
