// A scheduler in a separate process that tests can kill. Its clock can run faster than real time.
import { setTimeout as sleep } from "node:timers/promises";
import { json } from "node:stream/consumers";
import type pg from "pg";
import { silentLog } from "../../src/kit/log.ts";
import { formatIdentity, ownIdentity } from "../../src/kit/processes.ts";
import { cronTask } from "../../src/reconcile/cron/cron-task.ts";
import { openDatabase } from "../../src/store/database.ts";
import { openVault } from "../../src/store/vault.ts";
import { cronWorld, fastClock, type FastClock } from "./cron-platform.ts";

/** The JSON document on standard input. */
export interface CronSchedulerInput {
  readonly connection: pg.ClientConfig;
  readonly keyFile: string;
  readonly clock: FastClock;
}

const pollMs = 10;

if (import.meta.main) {
  const { connection, keyFile, clock } = (await json(process.stdin)) as CronSchedulerInput;
  const { db } = openDatabase({ connection: { ...connection, max: 3 }, log: silentLog });
  const owner = formatIdentity(ownIdentity());
  const task = cronTask(cronWorld({ db, vault: openVault({ keyFile }), clock: fastClock(clock), owner }));
  const stopping = new AbortController();
  process.once("SIGTERM", () => stopping.abort());
  process.stdout.write("ready\n");
  while (!stopping.signal.aborted) {
    await task.run(stopping.signal);
    await sleep(pollMs);
  }
  await task.settle?.();
  process.exit(0);
}
