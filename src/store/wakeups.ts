import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import pg from "pg";
import type { Log } from "../kit/log.ts";
import type { Db, Tx } from "./database.ts";

/** The kind of data that may have changed. */
export type Topic =
  | "builds"
  | "releases"
  | "apps"
  | "runs"
  | "edge"
  | "edges"
  | "databases"
  | "backups"
  | "branches"
  | "domains"
  | "certificates"
  | "cron"
  | "logs"
  | "tokens"
  | "approvals"
  | "changes"
  | "notifications"
  | "purges"
  | "webhooks"
  | "follow"
  | "metrics"
  | "images"
  | "platform_backups"
  | "archives"
  | "outcomes";
export type WakeupListener = (id: string) => void;

/** Notifies processes that something changed. Only a hint, which may be lost: every listener must also poll from time to time. */
export type Wakeups = Awaited<ReturnType<typeof openWakeups>>;

export interface WakeupsOptions {
  readonly connection: pg.ClientConfig;
  readonly log: Log;
}

/** Listens on a dedicated connection and reconnects when it breaks; after a reconnect every listener is called with `""`. */
export async function openWakeups(options: WakeupsOptions) {
  const listeners = new Map<Topic, Set<WakeupListener>>();
  const line = new Line(options, (topic, id) => tell(listeners, options.log, topic, id));
  await line.open();
  return {
    /** Wakes all listeners once `tx` commits. */
    send: sendWakeup,
    /** Calls the listener with the id that was sent, or with `""` when anything may have changed. Returns a function that unsubscribes. */
    on(topic: Topic, listener: WakeupListener) {
      const set = listeners.get(topic) ?? new Set();
      listeners.set(topic, set.add(listener));
      return () => void set.delete(listener);
    },
    /** Returns whether notifications currently arrive. */
    isListening: () => line.isListening(),
    close: () => line.close(),
  };
}

const channel = "berth";
const heartbeatMs = 10_000;
const retryMs = { first: 100, most: 2000 };

/** Wakes all listeners once `tx` commits, from a process that does not listen. */
export async function sendWakeup(tx: Db | Tx, topic: Topic, id = ""): Promise<void> {
  await sql`select pg_notify(${channel}, ${`${topic}:${id}`})`.execute(tx);
}

function tell(listeners: ReadonlyMap<Topic, Set<WakeupListener>>, log: Log, topic: Topic | null, id: string): void {
  const sets = topic === null ? [...listeners.values()] : [listeners.get(topic) ?? []];
  for (const listener of sets.flatMap((set) => [...set])) {
    try {
      listener(id);
    } catch (error) {
      log.error({ topic, error: String(error) }, "a wake-up listener failed");
    }
  }
}

class Line {
  readonly #options: WakeupsOptions;
  readonly #tell: (topic: Topic | null, id: string) => void;
  #client: pg.Client | undefined;
  #closed = false;
  #heartbeat: NodeJS.Timeout | undefined;

  constructor(options: WakeupsOptions, tellAll: (topic: Topic | null, id: string) => void) {
    this.#options = options;
    this.#tell = tellAll;
  }

  isListening(): boolean {
    return this.#client !== undefined;
  }

  async open(): Promise<void> {
    const client = new pg.Client({ ...this.#options.connection, keepAlive: true });
    client.on("error", () => this.#lost(client));
    client.on("end", () => this.#lost(client));
    client.on("notification", ({ payload = "" }) => {
      const colon = payload.indexOf(":");
      this.#tell(payload.slice(0, colon) as Topic, payload.slice(colon + 1));
    });
    await client.connect();
    await client.query(`listen ${channel}`);
    this.#client = client;
    this.#heartbeat = setInterval(() => this.#beat(client), heartbeatMs).unref();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#heartbeat);
    await this.#client?.end().catch(() => {});
  }

  // Only a query reveals a peer that disappeared silently (a cable, a firewall).
  #beat(client: pg.Client): void {
    const silent = setTimeout(() => this.#lost(client), heartbeatMs);
    client.query("select 1").then(
      () => clearTimeout(silent),
      () => clearTimeout(silent),
    );
  }

  #lost(client: pg.Client): void {
    if (this.#client !== client || this.#closed) return;
    this.#client = undefined;
    clearInterval(this.#heartbeat);
    client.end().catch(() => {});
    this.#options.log.warn({}, "lost the connection that listens for wake-ups");
    void this.#reopen();
  }

  async #reopen(): Promise<void> {
    for (let pauseMs = retryMs.first; !this.#closed; pauseMs = Math.min(pauseMs * 2, retryMs.most)) {
      await sleep(pauseMs, undefined, { ref: false });
      try {
        await this.open();
        if (this.#closed) return await this.close();
        this.#options.log.info({}, "listening for wake-ups again");
        return this.#tell(null, "");
      } catch {
        // The next attempt follows, and the loss has already been logged.
      }
    }
  }
}
