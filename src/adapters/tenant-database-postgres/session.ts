import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { tlsOptions } from "../../kit/server-tls.ts";
import type { Looked, TenantLogin, Unable } from "../../ports/tenant-database.ts";
import type { AnswerMemory } from "./answer-memory.ts";
import type { Slots } from "./slots.ts";
import { Stopped, tooMuchMemory, whyNoLogin, whyNot, type ServerError } from "./unable.ts";

/** One connection as the project's role, for one call. */
export interface Session {
  /** Runs a single statement of a user's and returns its rows as lists of text. Reads at most `most` of them and one more, to set `more`. */
  limited(statement: string, most: number): Promise<LimitedResult>;
  query<T extends object>(text: string, values?: readonly (string | null)[]): Promise<T[]>;
  /** Runs a statement and returns the number of changed rows. */
  change(text: string, values: readonly (string | null)[]): Promise<number>;
  /** Passes rows as arrays of text to `take` until that returns false, which ends the session. Resolves with whether all rows were read. */
  each(
    text: string,
    values: readonly (string | null)[],
    take: (row: readonly (string | null)[]) => boolean,
  ): Promise<boolean>;
}

export interface LimitedResult {
  readonly fields: readonly { readonly name: string; readonly dataTypeID: number }[];
  readonly rows: readonly (readonly (string | null)[])[];
  readonly more: boolean;
}

export interface SessionOptions {
  readonly slots: Slots;
  readonly memory: AnswerMemory;
  /** Terminates a session of the project's role from outside, whatever it is executing. */
  readonly endSession: (login: TenantLogin, processId: number) => Promise<void>;
  /** Limits a session's memory; resolves with a function that ends the watch and returns whether the session was ended. */
  readonly limitSession: (login: TenantLogin, processId: number) => Promise<() => Promise<boolean>>;
}

const statementTimeoutMs = 5000;
const sessionTimeoutMs = 6000;
const connectTimeoutMs = 3000;
const closeTimeoutMs = 1000;
// A page is at most 2 MiB plus one row, which may have 26 MiB. The rest leaves room for notices and errors, which a function can make
// arbitrarily large.
const mostBytes = 64 * 1024 * 1024;

/** Connects, runs `work` in a transaction and disconnects. Failures that the owner or the user causes become an outcome. */
export async function inSession<T>(
  options: SessionOptions,
  access: { readonly login: TenantLogin; readonly mode: "READ ONLY" | "READ WRITE"; readonly search_path?: string },
  work: (session: Session) => Promise<T>,
): Promise<Looked<T>> {
  try {
    const release = await options.slots.take(access.login.spec.id);
    const connection = new TenantConnection(options, access);
    try {
      return { outcome: "done", found: await connection.run(access.mode, work) };
    } finally {
      // The slot is released when the connection has closed; the caller does not wait for that.
      void connection.close().finally(() => {
        connection.forget();
        release();
      });
    }
  } catch (error) {
    if (error instanceof Stopped) return error.why;
    throw error;
  }
}

class TenantConnection implements Session {
  readonly #options: SessionOptions;
  readonly #login: TenantLogin;
  readonly #client: pg.Client;
  readonly #socket: Socket;
  #isLate = false;
  #flood: Unable | null = null;
  #receivedBytes = 0;
  #processId: number | null = null;

  constructor(options: SessionOptions, { login, search_path = "" }: { login: TenantLogin; search_path?: string }) {
    this.#options = options;
    this.#login = login;
    this.#socket = new Socket();
    this.#client = new pg.Client({ ...clientConfig(login, search_path), stream: () => this.#socket });
    // The query that is running reports a broken connection.
    this.#client.on("error", () => {});
    this.#socket.on("data", (chunk) => this.#receive(chunk.length));
  }

  #receive(bytes: number): void {
    this.#receivedBytes += bytes;
    const hasRoom = this.#options.memory.take(bytes, this.#receivedBytes);
    if (this.#receivedBytes > mostBytes) this.#flood = tooLarge;
    else if (!hasRoom) this.#flood = noRoom;
    if (this.#flood !== null) this.#socket.destroy();
  }

  /** Frees the memory of what the closed connection has received. */
  forget(): void {
    this.#options.memory.free(this.#receivedBytes);
  }

  async run<T>(mode: string, work: (session: Session) => Promise<T>): Promise<T> {
    const deadline = sleep(sessionTimeoutMs, "late" as const, { ref: false });
    const done = this.#work(mode, work);
    // After the deadline, the outcome of the work no longer matters.
    done.catch(() => {});
    const first = await Promise.race([done, deadline]);
    if (first === "late") {
      this.#isLate = true;
      throw new Stopped({ outcome: "timeout" });
    }
    return (first as { readonly found: T }).found;
  }

  async #work<T>(mode: string, work: (session: Session) => Promise<T>): Promise<{ found: T }> {
    await this.#client.connect().catch((error: ServerError & Error) => stop(error, whyNoLogin(error)));
    this.#processId = (this.#client as unknown as { processID: number }).processID;
    const endWatch = await this.#options.limitSession(this.#login, this.#processId);
    try {
      await this.#client.query(
        `BEGIN ISOLATION LEVEL ${mode === "READ ONLY" ? "REPEATABLE READ" : "READ COMMITTED"} ${mode}`,
      );
      const found = await work(this);
      if (mode === "READ WRITE") await this.#client.query("COMMIT");
      return { found };
    } catch (error) {
      if (error instanceof Stopped) throw error;
      if (this.#flood !== null) throw new Stopped(this.#flood);
      if (await endWatch()) throw new Stopped(tooMuchMemory);
      return stop(error as Error, whyNot(error as ServerError & Error));
    } finally {
      void endWatch();
    }
  }

  async query<T extends object>(text: string, values: readonly (string | null)[] = []): Promise<T[]> {
    const { rows } = await this.#client.query<T>(text, [...values]);
    return rows;
  }

  async change(text: string, values: readonly (string | null)[]): Promise<number> {
    const { rowCount } = await this.#client.query(text, [...values]);
    return rowCount ?? 0;
  }

  limited(statement: string, most: number): Promise<LimitedResult> {
    return new Promise((resolve, reject) => {
      const query = this.#client.query(new LimitedQuery(statement, most + 1));
      const present = ({ fields, rows }: pg.QueryArrayResult) =>
        resolve({ fields, rows: rows.slice(0, most), more: rows.length > most });
      query.on("end", present as never);
      query.on("error", reject);
    });
  }

  each(
    text: string,
    values: readonly (string | null)[],
    take: (row: readonly (string | null)[]) => boolean,
  ): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const query = this.#client.query(
        new pg.Query<(string | null)[]>({ text, rowMode: "array" } as pg.QueryConfig, [...values]),
      );
      let isOver = false;
      query.on("row", (row) => {
        if (isOver || take(row as unknown as (string | null)[])) return;
        isOver = true;
        this.#socket.destroy();
        resolve(false);
      });
      query.on("end", () => resolve(true));
      query.on("error", reject);
    });
  }

  /** Disconnects. If the session does not end by itself, terminates it from outside: it may be in a function that ignores everything else. */
  async close(): Promise<void> {
    if (!this.#isLate && !this.#socket.destroyed && (await this.#leave())) return;
    this.#socket.destroy();
    if (this.#processId !== null) await this.#options.endSession(this.#login, this.#processId).catch(() => {});
  }

  async #leave(): Promise<boolean> {
    const left = this.#client.end().then(
      () => true,
      () => false,
    );
    return Promise.race([left, sleep(closeTimeoutMs, false, { ref: false })]);
  }
}

const tooLarge = {
  outcome: "conflict",
  problem: "The answer is larger than 64 MiB.",
  hint: "Select fewer rows and columns, or parts of large values: left(value, 1000).",
} as const;

const noRoom = {
  outcome: "unavailable",
  problem: "Too many large answers are read at the same time.",
} as const;

// With `rows`, node-postgres uses the extended protocol, in which PostgreSQL accepts one statement only, and fetches that many rows.
class LimitedQuery extends pg.Query<(string | null)[]> {
  constructor(text: string, rows: number) {
    super({ text, rows, rowMode: "array", types: { getTypeParser: () => String } } as unknown as pg.QueryConfig);
  }

  // Ends the query here, where node-postgres would fetch the next rows.
  handlePortalSuspended(connection: { sync(): void }): void {
    connection.sync();
  }
}

function stop(error: Error, why: ReturnType<typeof whyNot>): never {
  if (why === undefined) throw error;
  throw new Stopped(why);
}

/** How the calls name themselves to the server. */
export const applicationName = "berth browser";

function clientConfig(login: TenantLogin, searchPath: string): pg.ClientConfig {
  return {
    host: login.host,
    port: login.port,
    ssl: tlsOptions(login, login.tls) ?? false,
    user: login.spec.role_name,
    password: login.spec.password,
    database: login.database ?? login.spec.database_name,
    connectionTimeoutMillis: connectTimeoutMs,
    application_name: applicationName,
    options: Object.entries({ ...settings, search_path: searchPath })
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(" "),
  };
}

// Settings in the startup packet override those that the owner set for the role or the database. The second part fixes the text format of values.
const settings = {
  local_preload_libraries: "",
  role: "none",
  idle_session_timeout: 0,
  default_transaction_read_only: "on",
  statement_timeout: statementTimeoutMs,
  lock_timeout: 2000,
  idle_in_transaction_session_timeout: sessionTimeoutMs,
  client_connection_check_interval: 1000,
  client_min_messages: "error",
  row_security: "on",
  synchronize_seqscans: "off",
  standard_conforming_strings: "on",

  client_encoding: "UTF8",
  DateStyle: "ISO,YMD",
  IntervalStyle: "postgres",
  TimeZone: "UTC",
  bytea_output: "hex",
  extra_float_digits: 1,
  lc_monetary: "C",
  xmlbinary: "base64",
  xmloption: "content",
};
