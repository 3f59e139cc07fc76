import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { ChildProcess } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { Command, start } from "../kit/exec.ts";
import { DatabaseWorkFailed } from "../ports/postgres-host.ts";
import { lightCommand } from "../sandbox/light-sandbox.ts";
import {
  isSystemFolder,
  programEnvironment,
  readOnly,
  sandboxOf,
  usersIn,
  writable,
  type Confinement,
} from "./confinement.ts";
import type { ServerConnection } from "./connection.ts";

/** Where pg_dump and pg_restore are, and how they are kept apart. */
export interface ClientPrograms {
  readonly confinement: Confinement;
  /** The folder with the `passwd` and `group` that they see. */
  readonly configDir: string;
  readonly pgDump: string | null;
  readonly pgRestore: string | null;
}

/** Who logs in, over the unix socket in `host`. Holds a secret. */
export type Login = ServerConnection;

export interface ClientCall {
  readonly program: "pg_dump" | "pg_restore";
  readonly args: readonly string[];
  readonly login: Login;
  /** Settings of the session, as `-c name=value`. */
  readonly options?: string;
}

/** A client program's command and environment; the password is in the latter. */
export function clientCommand(
  programs: ClientPrograms,
  call: ClientCall,
): { command: Command; env: Record<string, string> } {
  const file = call.program === "pg_dump" ? programs.pgDump : programs.pgRestore;
  if (file === null)
    throw new DatabaseWorkFailed("missing", `${call.program} is not installed on the platform's machine.`);
  const { login } = call;
  const isConfined = programs.confinement.bwrap !== null;
  const env = {
    ...programEnvironment,
    PGHOST: isConfined ? "/berth/sockets" : login.host,
    PGPORT: String(login.port),
    PGUSER: login.user,
    PGPASSWORD: login.password,
    PGDATABASE: login.database,
    PGCONNECT_TIMEOUT: "10",
    ...(call.options === undefined ? {} : { PGOPTIONS: call.options }),
  };
  const command = call.program === "pg_dump" ? inLargePieces({ file, args: call.args }) : { file, args: call.args };
  return { command: confined(programs, command, { sockets: login.host, program: dirname(dirname(file)) }), env };
}

/**
 * The command that runs a client program confined: it sees the server's socket and nothing of the network or of other projects,
 * as the server's user, because what it reads was made by the project's owner. It ends with the control plane.
 */
function confined(
  { confinement, configDir }: ClientPrograms,
  command: Command,
  { sockets, program }: { readonly sockets: string; readonly program: string },
): Command {
  if (confinement.bwrap === null) return command;
  const binds = [
    ...usersIn(configDir),
    writable(sockets, "/berth/sockets"),
    ...(isSystemFolder(program) ? [] : [readOnly(program, program)]),
  ];
  return lightCommand({ ...sandboxOf(confinement), binds }, command);
}

const zstd = "/usr/bin/zstd";

/** The program that compresses archives, confined as those that make them; null where the machine has none. Level 3: measured, a gigabyte in a third of gzip's time and smaller. */
export function compressorCommand({ confinement, configDir }: ClientPrograms): Command | null {
  if (!existsSync(zstd)) return null;
  const command = { file: zstd, args: ["-3", "--quiet", "--stdout"] };
  if (confinement.bwrap === null) return command;
  return lightCommand({ ...sandboxOf(confinement), binds: usersIn(configDir) }, command);
}

const stdbuf = "/usr/bin/stdbuf";

// Measured: pg_dump writes a few kilobytes at a time into a pipe; in large pieces it takes a third of the processor time to move them.
function inLargePieces(command: Command): Command {
  return existsSync(stdbuf) ? { file: stdbuf, args: ["--output=1M", command.file, ...command.args] } : command;
}

const keptErrorBytes = 64 * 1024;

/** How a client program ends; it is killed when the signal aborts. Never rejects: a program that cannot start ends with null. */
export function endOf(
  child: ReturnType<typeof start>,
  signal: AbortSignal,
): Promise<{ exitCode: number | null; stderr: string }> {
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    // The first error is the reason; those that follow come of it.
    if (stderr.length < keptErrorBytes) stderr += chunk.toString("utf8");
  });
  const stop = () => halt(child);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  return new Promise((resolve) => {
    const end = (exitCode: number | null) => {
      signal.removeEventListener("abort", stop);
      resolve({ exitCode, stderr });
    };
    (child as ChildProcess).once("error", () => end(null)).once("close", end);
  });
}

/**
 * Ends a client program, started with a process group of its own, at once. Seen: of a sandbox that is killed while it is being
 * made, bubblewrap's second process stays behind for ever, so it is not enough to kill the first.
 */
export function halt(child: ReturnType<typeof start>): void {
  try {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has just ended by itself.
  }
  for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as Readable | Writable | null)?.destroy();
}

/** The stream's content; its end is only seen once `check` has resolved. */
export async function* checkedContent(content: Readable, check: () => Promise<void>): AsyncGenerator<Buffer> {
  yield* content as AsyncIterable<Buffer>;
  await check();
}
