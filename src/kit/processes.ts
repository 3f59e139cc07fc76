import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { attempt } from "./attempt.ts";

export function processIds(): number[] {
  return readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}

/** Identifies a process even if its pid is reused later: pid, start time in clock ticks, and boot id. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly start_time: string;
  readonly boot_id: string;
}

export function identify(pid: number): ProcessIdentity | undefined {
  const stat = readStat(pid);
  return stat && { pid, start_time: stat.startTime, boot_id: bootId() };
}

/** Returns whether exactly this process is still alive. A zombie is not, although kill(pid, 0) succeeds for it. */
export function isAlive(identity: ProcessIdentity): boolean {
  const stat = readStat(identity.pid);
  return (
    stat !== undefined &&
    stat.startTime === identity.start_time &&
    !"ZX".includes(stat.state) &&
    identity.boot_id === bootId()
  );
}

/** Sends a signal to exactly this process; false when it is already gone. */
export function sendSignal(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false;
  try {
    return process.kill(identity.pid, signal);
  } catch {
    return false;
  }
}

/** proc(5): field 3 is the state, field 22 the start time. The name before them may contain spaces and brackets. */
function readStat(pid: number): { state: string; startTime: string } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] as string, startTime: fields[19] as string };
  } catch {
    return undefined;
  }
}

// Cached: it can't change while this process lives.
let boot: string | undefined;

function bootId(): string {
  boot ??= readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return boot;
}

/** Returns an empty text when the kernel does not reveal it. */
function pidNamespace(): string {
  return attempt(() => readlinkSync("/proc/self/ns/pid").replaceAll(/\D/g, ""), "");
}

export function ownIdentity(): ProcessIdentity {
  return identify(process.pid) as ProcessIdentity;
}

/** Returns whether a process still runs a program or library whose file was replaced or removed, as by an update of its package. */
export function runsReplacedFiles(pid: number): boolean {
  // proc(5): address, permissions, offset, device, inode, path.
  return /^\S+ r-x\S* \S+ \S+ \d+ +\/(?!dev\/|memfd:|SYSV).* \(deleted\)$/m.test(readProcessFile(pid, "maps"));
}

/** Formats an identity as one word, for a column or a file. */
export function formatIdentity(identity: ProcessIdentity): string {
  return `${identity.boot_id}/${identity.pid}/${identity.start_time}`;
}

/** Like `formatIdentity`, for a column that containers of one machine share: adds the pid namespace, without which a pid is ambiguous. */
export function formatOwner(identity: ProcessIdentity): string {
  return `${formatIdentity(identity)}/${pidNamespace()}`;
}

/** Returns whether the word names a process of this boot that is gone; false for other machines, boots and containers. */
export function isKnownDead(word: string): boolean {
  const [boot, pid, start, namespace = pidNamespace()] = word.split("/");
  if (boot !== bootId() || pid === undefined || start === undefined || namespace !== pidNamespace()) return false;
  return !isAlive({ boot_id: boot, pid: Number(pid), start_time: start });
}

/** Reads a file of proc(5) of one process; empty when the process has exited, or is hidden because it belongs to another user. */
export function readProcessFile(
  pid: number,
  file: "cmdline" | "environ" | "limits" | "maps" | "stat" | "status" | `task/${number}/children`,
): string {
  return attempt(() => readFileSync(`/proc/${pid}/${file}`, "utf8"), "");
}
