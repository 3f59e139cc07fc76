import { randomUUID } from "node:crypto";
import type { Db } from "../../src/store/database.ts";
import type { Wakeups } from "../../src/store/wakeups.ts";

/**
 * Resolves when every wake-up of what is committed by now has arrived: PostgreSQL delivers them in the order of their commits, so one that is
 * sent now comes last. Resolves never when none arrive.
 */
export async function allWakeupsArrived({ db, wakeups }: { db: Db; wakeups: Wakeups }): Promise<void> {
  const mark = randomUUID();
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = wakeups.on("purges", (id) => (id === mark ? resolve() : undefined));
  await wakeups.send(db, "purges", mark);
  await promise;
  stop();
}
