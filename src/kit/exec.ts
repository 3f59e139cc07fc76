import { spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { companionsFile } from "./tenant-group.ts";

/** What to run: a program and its arguments. Never a shell string, never a secret in `args`. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

/** Where and how to run a command. `env` is the exact environment, nothing is inherited; by default it holds only the system's PATH. */
export interface ExecOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly gid?: number;
  /** Extra descriptors for the child: index 0 becomes fd 3, and so on. */
  readonly fds?: readonly number[];
  /** Lowers the CPU priority, for work that people expect to take longer than a page. */
  readonly isBackground?: boolean;
  /** The number of bidirectional pipes: the child's descriptors from 3 on, `child.stdio[3]` and so on in this process. */
  readonly pipes?: number;
  /** Connects the child's stdout directly to this stream, the stdin of another child. Only for `start`. */
  readonly into?: Writable;
  /** The child reads its stdin from this descriptor. Only for `start`, whose child then has no `stdin`. */
  readonly from?: number;
  /** Makes descriptor 3 a control pipe; `fds` follow it. */
  readonly controlled?: boolean;
  /** The child leads its own process group, and a time-out or abort kills the whole group. */
  readonly ownGroup?: boolean;
}

export interface RunOptions extends ExecOptions {
  readonly stdin?: string | Uint8Array | Readable;
  /** SIGTERM after this long, SIGKILL two seconds later. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** How much of each stream is kept, counted from its end. Default 1 MiB. */
  readonly maxOutputBytes?: number;
  /** Receives output. While a returned promise is pending, nothing more is read, so the program blocks. */
  readonly onStdout?: OutputListener;
  readonly onStderr?: OutputListener;
  /** Sent to the program on descriptor 3; `fds` then start at 4. */
  readonly control?: Readable;
}

type OutputListener = (chunk: Buffer) => void | Promise<void>;

/** How a process ended. `exitCode` is null when a signal ended it. */
export interface ExecResult {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

/** Thrown by `runOk`: carries the program's name and the end of its stderr, not its arguments. */
class CommandFailed extends Error {
  readonly result: ExecResult;
  constructor(command: Command, result: ExecResult) {
    const how = result.timedOut ? "timed out" : `ended with ${result.exitCode ?? result.signal}`;
    super(`${command.file} ${how}: ${result.stderr.trim().slice(-2000)}`);
    this.name = "CommandFailed";
    this.result = result;
  }
}

/** Where the system's programs are: the default PATH of every process. */
export const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const defaultMaxOutputBytes = 1024 * 1024;
const killAfterMs = 2000;

/** Runs a command to its end and returns how it exited. Throws only when the program cannot be started. */
export async function run(command: Command, options: RunOptions = {}): Promise<ExecResult> {
  const child = start(command, { ...options, ...(options.control === undefined ? {} : { controlled: true }) });
  const stopping = new AbortController();
  const { maxOutputBytes: limitBytes } = options;
  const stdout = keepNewest(child.stdout, { limitBytes, listen: options.onStdout, stopping: stopping.signal });
  const stderr = keepNewest(child.stderr, { limitBytes, listen: options.onStderr, stopping: stopping.signal });
  const limit = limitTime(child, options, () => stopping.abort());
  feed(child.stdin, options.stdin);
  if (options.control !== undefined) feed(child.stdio[3] as Writable, options.control);
  try {
    const ended = await ending(child);
    return { ...ended, stdout: stdout(), stderr: stderr(), timedOut: limit.timedOut() };
  } finally {
    limit.clear();
  }
}

/** Like `run`, but throws `CommandFailed` unless the exit code is 0. */
export async function runOk(command: Command, options: RunOptions = {}): Promise<ExecResult> {
  const result = await run(command, options);
  if (result.exitCode !== 0 || result.timedOut) throw new CommandFailed(command, result);
  return result;
}

/** Starts a child with pipes on stdin, stdout (unless `into` is set) and stderr, for callers that stream. */
export function start(command: Command, options: ExecOptions = {}): ChildProcess & PipedStreams {
  const pipes = Array<"pipe">(options.pipes ?? 0).fill("pipe");
  const control: "pipe"[] = options.controlled ? ["pipe"] : [];
  const [stdin, stdout] = [options.from ?? "pipe", options.into ?? "pipe"] as const;
  const stdio: StdioOptions = [stdin, stdout, "pipe", ...control, ...(options.fds ?? []), ...pipes];
  const { file, args } = options.isBackground ? inBackground(command) : command;
  return spawn(file, [...args], { ...placement(options), stdio }) as ChildProcess & PipedStreams;
}

// Not `setPriority` after the start: on a busy machine it comes too late, and children that the program has started by then keep the higher priority.
function inBackground(command: Command): Command {
  return nice === undefined ? command : { file: nice, args: ["-n", "10", command.file, ...command.args] };
}

// An absolute path, because a child's environment may have no PATH.
const nice = ["/usr/bin/nice", "/bin/nice"].find((path) => existsSync(path));

/** Runs a program in the foreground, with this process's streams and Ctrl-C. `input` replaces its stdin. Rejects if it cannot start. */
export async function runAttached(
  command: Command,
  { input, ...options }: ExecOptions & { readonly input?: Readable },
): Promise<Pick<ExecResult, "exitCode" | "signal">> {
  const listeners = process.rawListeners("SIGINT") as NodeJS.SignalsListener[];
  const ignore = () => {};
  process.removeAllListeners("SIGINT").on("SIGINT", ignore);
  try {
    const stdio: StdioOptions = [input === undefined ? "inherit" : "pipe", "inherit", "inherit"];
    const child = spawn(command.file, [...command.args], { ...placement(options), stdio });
    if (input !== undefined && child.stdin !== null) pipeline(input, child.stdin).catch(() => child.kill());
    return await ending(child);
  } finally {
    process.off("SIGINT", ignore);
    for (const listener of listeners) process.on("SIGINT", listener);
  }
}

export interface PipedStreams {
  readonly stdin: NonNullable<ChildProcess["stdin"]>;
  readonly stdout: NonNullable<ChildProcess["stdout"]>;
  readonly stderr: NonNullable<ChildProcess["stderr"]>;
}

/** Starts a process that outlives this one, in its own session, with its output appended to `logFile`. Resolves with its pid. */
export async function startDetached(command: Command, logFile: string, options: ExecOptions = {}): Promise<number> {
  const log = openSync(logFile, "a", 0o600);
  try {
    const stdio: StdioOptions = ["ignore", log, log, ...(options.fds ?? [])];
    const placed = options.uid === undefined ? outsideOfService(command) : command;
    const child = spawn(placed.file, [...placed.args], { ...placement(options), stdio, detached: true });
    await new Promise<void>((resolve, reject) => child.once("spawn", resolve).once("error", reject));
    child.unref();
    return child.pid as number;
  } finally {
    closeSync(log);
  }
}

/** systemd kills a service's whole control group, so processes that outlive the control plane must be moved out of it. */
function outsideOfService(command: Command): Command {
  const file = companionsFile();
  return file === undefined
    ? command
    : { file: "/bin/sh", args: [join(import.meta.dirname, "join-group.sh"), file, command.file, ...command.args] };
}

function placement(options: ExecOptions) {
  return {
    cwd: options.cwd ?? "/",
    env: { ...(options.env ?? { PATH: systemPath }) },
    ...(options.ownGroup ? { detached: true } : {}),
    ...(options.uid === undefined ? {} : { uid: options.uid }),
    ...(options.gid === undefined ? {} : { gid: options.gid }),
  };
}

interface KeptOutput {
  readonly limitBytes: number | undefined;
  readonly listen: OutputListener | undefined;
  /** Once aborted, a slow listener no longer delays the reading. */
  readonly stopping: AbortSignal;
}

function keepNewest(stream: Readable, { limitBytes: limit = defaultMaxOutputBytes, listen, stopping }: KeptOutput) {
  stopping.addEventListener("abort", () => stream.resume(), { once: true });
  let chunks: Buffer[] = [];
  let size = 0;
  stream.on("data", (chunk: Buffer) => {
    const taken = listen?.(chunk);
    if (taken !== undefined && !stopping.aborted) {
      stream.pause();
      void taken.catch(() => {}).finally(() => stream.resume());
    }
    chunks.push(chunk);
    size += chunk.length;
    if (size <= 2 * limit) return;
    const tail = Buffer.concat(chunks).subarray(-limit);
    chunks = [tail];
    size = tail.length;
  });
  return () => Buffer.concat(chunks).subarray(-limit).toString("utf8");
}

function feed(stdin: Writable, input: RunOptions["stdin"]): void {
  // A program may exit before it has read all its input, so EPIPE is not an error.
  stdin.on("error", () => {});
  if (input === undefined) stdin.end();
  else if (typeof input === "string" || input instanceof Uint8Array) stdin.end(input);
  else pipeline(input, stdin).catch(() => stdin.destroy());
}

function limitTime(child: ChildProcess, options: RunOptions, onStop: () => void) {
  let timedOut = false;
  let kill: NodeJS.Timeout | undefined;
  const stop = () => {
    onStop();
    signalTo(child, "SIGTERM", options);
    kill = setTimeout(() => signalTo(child, "SIGKILL", options), killAfterMs);
  };
  const expire = () => {
    timedOut = true;
    stop();
  };
  const timer = options.timeoutMs === undefined ? undefined : setTimeout(expire, options.timeoutMs);
  if (options.signal?.aborted) stop();
  options.signal?.addEventListener("abort", stop, { once: true });
  const clear = () => {
    clearTimeout(timer);
    clearTimeout(kill);
    options.signal?.removeEventListener("abort", stop);
  };
  return { timedOut: () => timedOut, clear };
}

export function signalTo(
  child: ChildProcess,
  signal: NodeJS.Signals,
  { ownGroup }: Pick<ExecOptions, "ownGroup">,
): void {
  if (!ownGroup || child.pid === undefined) return void child.kill(signal);
  try {
    process.kill(-child.pid, signal);
  } catch {
    // The whole group has already exited.
  }
}

function ending(child: ChildProcess): Promise<Pick<ExecResult, "exitCode" | "signal">> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode, signal) => resolve({ exitCode, signal }));
  });
}
