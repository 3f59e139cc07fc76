import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { ChildProcess } from "node:child_process";
import { PassThrough, pipeline, type Readable, type Writable } from "node:stream";
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

/** Where pg_dump and pg_restore are, and how they are confined. */
export interface ClientPrograms {
  readonly confinement: Confinement;
  /** The folder with the `passwd` and `group` files that the programs see. */
  readonly configDir: string;
  readonly pgDump: string | null;
  readonly pgRestore: string | null;
}

/** A role's login over the Unix socket in `host`. Holds a secret. */
export type Login = ServerConnection;

export interface ClientCall {
  readonly program: "pg_dump" | "pg_restore";
  readonly args: readonly string[];
  readonly login: Login;
  /** Session settings, as `-c name=value`. */
  readonly options?: string;
}

/** Returns a client program's command and environment; the environment contains the password. */
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
    PGCONNECT_TIMEOUT: "30",
    ...(call.options === undefined ? {} : { PGOPTIONS: call.options }),
  };
  const command = call.program === "pg_dump" ? inLargePieces({ file, args: call.args }) : { file, args: call.args };
  return { command: confined(programs, command, { sockets: login.host, program: dirname(dirname(file)) }), env };
}

/**
 * Confines a client program: it sees the server's socket, but neither the network nor other projects, and runs as the server's user,
 * because its input comes from the project's owner. It exits with the control plane.
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

export const zstd = "/usr/bin/zstd";

/** Returns the command that compresses archives, confined like pg_dump; null without zstd. Level 3 takes a third of gzip's time. */
export function compressorCommand({ confinement, configDir }: ClientPrograms): Command | null {
  if (!existsSync(zstd)) return null;
  const command = { file: zstd, args: ["-3", "--quiet", "--stdout"] };
  if (confinement.bwrap === null) return command;
  return lightCommand({ ...sandboxOf(confinement), binds: usersIn(configDir) }, command);
}

const stdbuf = "/usr/bin/stdbuf";

// pg_dump writes a few kilobytes at a time into a pipe; large writes take a third of the processor time (measured).
function inLargePieces(command: Command): Command {
  return existsSync(stdbuf) ? { file: stdbuf, args: ["--output=1M", command.file, ...command.args] } : command;
}

const keptErrorBytes = 64 * 1024;

/** Resolves when a client program exits, and kills it when the signal aborts. Never rejects: null stands for one that could not start. */
export function endOf(
  child: ReturnType<typeof start>,
  signal: AbortSignal,
): Promise<{ exitCode: number | null; stderr: string }> {
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => {
    // Keep the beginning: the first error is the cause of those that follow.
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

/** Kills a client program with its process group: bubblewrap, killed while it sets up a sandbox, leaves its second process. */
export function halt(child: ReturnType<typeof start>): void {
  try {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has just exited.
  }
  for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as Readable | Writable | null)?.destroy();
}

/** Yields a program's output, but ends only once `check` has resolved. Reads at once: Node.js drops what is unread when it exits. */
export function checkedContent(output: Readable, check: () => Promise<void>): AsyncGenerator<Buffer> {
  const kept = new PassThrough();
  // An error reaches the reader of `kept`.
  pipeline(output, kept, () => {});
  return (async function* () {
    yield* kept as AsyncIterable<Buffer>;
    await check();
  })();
}
