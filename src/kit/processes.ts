import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The processes of this machine at this moment. */
export function processIds(): number[] {
  return readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}

/** A process, distinct from a later one with the same pid: pid, start time in clock ticks, and the boot it ran in. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly start_time: string;
  readonly boot_id: string;
}

/** The identity of a living process, or undefined when there is none with this pid. */
export function identify(pid: number): ProcessIdentity | undefined {
  const stat = readStat(pid);
  return stat && { pid, start_time: stat.startTime, boot_id: bootId() };
}

/** Whether exactly this process still lives. A zombie does not (kill(pid, 0) would say it does). */
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

/** proc(5): field 3 is the state, field 22 the start time; the name before them may contain spaces and brackets. */
function readStat(pid: number): { state: string; startTime: string } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] as string, startTime: fields[19] as string };
  } catch {
    return undefined;
  }
}

// It stays the same for as long as this process lives.
let boot: string | undefined;

function bootId(): string {
  boot ??= readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return boot;
}

/** Empty where the kernel does not say. */
function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid").replaceAll(/\D/g, "");
  } catch {
    return "";
  }
}

/** The identity of this process. */
export function ownIdentity(): ProcessIdentity {
  return identify(process.pid) as ProcessIdentity;
}

/** An identity as one word, for a column or a file. */
export function formatIdentity(identity: ProcessIdentity): string {
  return `${identity.boot_id}/${identity.pid}/${identity.start_time}`;
}

/** The same for a column that processes of several containers on one machine read: there a pid says nothing without its namespace. */
export function formatOwner(identity: ProcessIdentity): string {
  return `${formatIdentity(identity)}/${pidNamespace()}`;
}

/** Whether the word names a process of this boot that is gone. Of other machines, boots and containers nothing is known: false. */
export function isKnownDead(word: string): boolean {
  const [boot, pid, start, namespace = pidNamespace()] = word.split("/");
  if (boot !== bootId() || pid === undefined || start === undefined || namespace !== pidNamespace()) return false;
  return !isAlive({ boot_id: boot, pid: Number(pid), start_time: start });
}

/** How long this process was ready to run while others had the processors, since it began; 0 where the kernel does not say. */
export function waitedForProcessorMs(pid: number): number {
  return Number(readProcessFile(pid, "schedstat").split(" ")[1] ?? 0) / 1e6;
}

/** A file of proc(5) of one process; empty when the process has ended, or belongs to another user who hides it. */
export function readProcessFile(pid: number, file: "cmdline" | "environ" | "schedstat" | "stat" | "status"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}
