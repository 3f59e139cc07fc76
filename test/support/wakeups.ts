import { randomUUID } from "node:crypto";
import type { Db } from "../../src/store/database.ts";
import type { Wakeups } from "../../src/store/wakeups.ts";

/**
 * Resolves when the wake-ups of all changes committed so far have arrived. PostgreSQL delivers notifications in commit order, so one that is
 * sent now arrives last. Never resolves when notifications do not arrive.
 */
export async function allWakeupsArrived({ db, wakeups }: { db: Db; wakeups: Wakeups }): Promise<void> {
  const mark = randomUUID();
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = wakeups.on("purges", (id) => (id === mark ? resolve() : undefined));
  await wakeups.send(db, "purges", mark);
  await promise;
  stop();
}
