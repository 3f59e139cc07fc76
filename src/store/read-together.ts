import { setTimeout as sleep } from "node:timers/promises";
import { CompiledQuery } from "kysely";
import type { Db, Tx } from "./database.ts";

interface Reading {
  /** Fulfilled when the statement has ended, also when it failed. */
  readonly ended: Promise<unknown>;
  next: Promise<readonly unknown[]> | undefined;
}

/** How long callers wait for a statement that runs: it may hang on a connection that is dead. */
const patienceMs = 250;

const readings = new WeakMap<Db, Map<string, Map<string, Reading>>>();

/**
 * Runs a statement that only reads. Callers that ask for the same while it runs share one further run, which starts after all of them have
 * asked: nobody gets rows from before its call, and a crowd that polls costs no more than two statements. In a transaction each call runs
 * its own. Callers share the rows, so they must not change them.
 */
export function readTogether<Row>(db: Db | Tx, text: string, values: readonly unknown[]): Promise<readonly Row[]> {
  const run = async () => (await db.executeQuery<Row>(CompiledQuery.raw(text, [...values]))).rows;
  if (db.isTransaction) return run();
  const ofText = entryOf(readingsOf(db), text);
  const key = JSON.stringify(values);
  const start = () => {
    const rows = run();
    const reading: Reading = { ended: rows.catch(() => {}), next: undefined };
    ofText.set(key, reading);
    const isLast = () => ofText.get(key) === reading && reading.next === undefined;
    void reading.ended.then(() => isLast() && ofText.delete(key));
    return rows;
  };
  const current = ofText.get(key);
  if (current === undefined) return start();
  current.next ??= Promise.race([current.ended, sleep(patienceMs, undefined, { ref: false })]).then(start);
  return current.next as Promise<readonly Row[]>;
}

function readingsOf(db: Db) {
  const found = readings.get(db) ?? new Map<string, Map<string, Reading>>();
  readings.set(db, found);
  return found;
}

function entryOf(texts: Map<string, Map<string, Reading>>, text: string) {
  const found = texts.get(text) ?? new Map<string, Reading>();
  texts.set(text, found);
  return found;
}
