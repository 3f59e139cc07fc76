import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { mapWithConcurrency } from "../../src/kit/map-with-concurrency.ts";

/** A commit of the ledger, by this machine's clock. Null: its answer never came, so it may have happened or not. */
interface Commit {
  readonly begunMs: number;
  ackedMs: number | null;
}

/** Writers of a database that know what they have committed, and when. */
export interface Ledger {
  /** Commits by the id of their row. */
  readonly commits: ReadonlyMap<number, Commit>;
  /** Waits for the open commits and returns the number of acknowledged ones. */
  stop(): Promise<number>;
}

export const ledgerTable = "create table ledger (id int primary key, body text)";

/** Starts `writers` that each commit a row and pause for up to `pauseMs`. A broken connection is opened again. */
export function startLedger(
  connect: () => Promise<pg.Client>,
  { writers, pauseMs }: { readonly writers: number; readonly pauseMs: number },
): Ledger {
  const commits = new Map<number, Commit>();
  let isOver = false;
  const write = async () => {
    let client: pg.Client | undefined;
    while (!isOver) {
      try {
        client ??= await connect();
        const id = commits.size + 1;
        const commit: Commit = { begunMs: Date.now(), ackedMs: null };
        commits.set(id, commit);
        await client.query("insert into ledger values ($1, md5($1::int::text))", [id]);
        commit.ackedMs = Date.now();
      } catch {
        await client?.end().catch(() => {});
        client = undefined;
      }
      await sleep(Math.random() * pauseMs);
    }
    await client?.end();
  };
  const done = mapWithConcurrency(Array.from({ length: writers }), writers, write);
  return {
    commits,
    async stop() {
      isOver = true;
      await done;
      return [...commits.values()].filter(({ ackedMs }) => ackedMs !== null).length;
    },
  };
}

/** Returns the commits that a database as of a moment lacks, and those that it shows too early. */
export function wrongAt({ commits }: Ledger, shown: ReadonlySet<number>, atMs: number) {
  const all = [...commits];
  const lacking = all.filter(([id, { ackedMs }]) => ackedMs !== null && ackedMs < atMs && !shown.has(id));
  const early = all.filter(([id, { begunMs }]) => begunMs > atMs && shown.has(id));
  return { lacking: lacking.map(([id]) => id), early: early.map(([id]) => id) };
}
