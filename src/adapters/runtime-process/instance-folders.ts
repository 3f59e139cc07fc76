import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { InstanceAddress, InstanceExit, InstanceKey, LocalService, WorkloadLimits } from "../../ports/runtime.ts";
import { identify, type ProcessIdentity } from "../../kit/processes.ts";

/** What is written of an instance before it starts. No secrets: its environment is nowhere but in the process. */
export interface InstanceRecord extends InstanceKey {
  readonly project_id: string;
  readonly image_ref: string;
  readonly sandbox_id: string;
  readonly boot_id: string;
  readonly started_at: string;
  readonly limits: WorkloadLimits;
  readonly reach: readonly LocalService[];
  readonly address: InstanceAddress | null;
}

/**
 * `<root>/live/<workload>/<ordinal>/<attempt>/` holds `instance.json`, `pid` (the shim's stat line), `exit` (its code), `ended.json`
 * (how it ended, settled) and `output`. A surplus ordinal moves to `<root>/ended`, where its output can still be read for a while.
 * `<root>/attempts/<workload>` counts the starts of each ordinal, so that none has the number of another, even after the workload was removed.
 */
export class InstanceFolders {
  readonly #live: string;
  readonly #ended: string;
  readonly #attempts: string;

  constructor(root: string) {
    this.#live = join(root, "live");
    this.#ended = join(root, "ended");
    this.#attempts = join(root, "attempts");
    for (const folder of [this.#live, this.#ended, this.#attempts]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  workloads(): string[] {
    return namesIn(this.#live);
  }

  ordinals(workloadId: string): number[] {
    return numbersIn(join(this.#live, workloadId));
  }

  /** The newest attempt of each ordinal. */
  latest(workloadId: string): InstanceFolder[] {
    return this.ordinals(workloadId).flatMap((ordinal) => this.latestOf(workloadId, ordinal) ?? []);
  }

  latestOf(workloadId: string, ordinal: number): InstanceFolder | undefined {
    const attempts = numbersIn(join(this.#live, workloadId, String(ordinal)));
    const attempt = Math.max(...attempts);
    return attempts.length === 0
      ? undefined
      : InstanceFolder.read(join(this.#live, workloadId, String(ordinal), String(attempt)));
  }

  /** The number of the ordinal's next start. */
  nextAttempt(workloadId: string, ordinal: number): number {
    return (this.#counted(workloadId)[ordinal] ?? 0) + 1;
  }

  /** Where the instance's files are, live or ended; undefined when it is forgotten. */
  find(key: InstanceKey): string | undefined {
    const name = join(key.workload_id, String(key.ordinal), String(key.attempt));
    return [join(this.#live, name), join(this.#ended, name)].find((path) => existsSync(path));
  }

  /** Claims an attempt with all its files in one rename; undefined when somebody else has it. `owner` may append to its output. */
  claim(record: InstanceRecord, owner: number): InstanceFolder | undefined {
    const parent = join(this.#live, record.workload_id, String(record.ordinal));
    const draft = join(parent, `draft-${process.pid}-${Math.random().toString(36).slice(2)}`);
    const path = join(parent, String(record.attempt));
    mkdirSync(draft, { recursive: true, mode: 0o700 });
    const output = join(draft, "output");
    closeSync(openSync(output, "wx", 0o600));
    if (process.geteuid?.() === 0) chownSync(output, owner, owner);
    writeFileSync(join(draft, "instance.json"), JSON.stringify(record), { mode: 0o600 });
    try {
      renameSync(draft, path);
      const counted = { ...this.#counted(record.workload_id), [record.ordinal]: record.attempt };
      replaceFile(join(this.#attempts, record.workload_id), JSON.stringify(counted));
      return new InstanceFolder(path, record);
    } catch {
      rmSync(draft, { recursive: true, force: true });
      return undefined;
    }
  }

  /** Attempts before the last three are forgotten with their output. */
  forgetOldAttempts(workloadId: string, ordinal: number): void {
    const folder = join(this.#live, workloadId, String(ordinal));
    const old = numbersIn(folder)
      .sort((a, b) => b - a)
      .slice(3);
    for (const attempt of old) rmSync(join(folder, String(attempt)), { recursive: true, force: true });
  }

  retire(workloadId: string, ordinal: number): void {
    const name = join(workloadId, String(ordinal));
    const target = join(this.#ended, name);
    if (!existsSync(join(this.#live, name))) return;
    rmSync(target, { recursive: true, force: true });
    mkdirSync(join(this.#ended, workloadId), { recursive: true, mode: 0o700 });
    renameSync(join(this.#live, name), target);
    writeFileSync(join(this.#ended, workloadId, "retired_at"), String(Date.now()));
  }

  /** Throws everything of a workload away but its counts. */
  forgetWorkload(workloadId: string): void {
    for (const folder of [this.#live, this.#ended]) rmSync(join(folder, workloadId), { recursive: true, force: true });
  }

  /** Throws the files of surplus ordinals away that were stopped before `beforeMs`. */
  sweepEnded(beforeMs: number): void {
    for (const workloadId of namesIn(this.#ended)) {
      const folder = join(this.#ended, workloadId);
      if (Number(readText(join(folder, "retired_at")) ?? 0) < beforeMs)
        rmSync(folder, { recursive: true, force: true });
    }
  }

  #counted(workloadId: string): Readonly<Record<number, number>> {
    return JSON.parse(readText(join(this.#attempts, workloadId)) ?? "{}") as Record<number, number>;
  }
}

/** One attempt's files. */
export class InstanceFolder {
  readonly path: string;
  readonly record: InstanceRecord;

  constructor(path: string, record: InstanceRecord) {
    this.path = path;
    this.record = record;
  }

  static read(path: string): InstanceFolder | undefined {
    const text = readText(join(path, "instance.json"));
    return text === undefined ? undefined : new InstanceFolder(path, JSON.parse(text) as InstanceRecord);
  }

  withAddress(address: InstanceAddress | null): InstanceFolder {
    const record = { ...this.record, address };
    replaceFile(join(this.path, "instance.json"), JSON.stringify(record));
    return new InstanceFolder(this.path, record);
  }

  /** The shim, if it has started: proc(5) field 1 is the pid, field 22 the start time. */
  shim(): ProcessIdentity | undefined {
    const text = readText(join(this.path, "pid"));
    if (!text?.endsWith("\n")) return undefined;
    const pid = Number.parseInt(text, 10);
    const startTime = text.slice(text.lastIndexOf(")") + 2).split(" ")[19];
    if (!Number.isInteger(pid) || startTime === undefined) return undefined;
    return { pid, start_time: startTime, boot_id: this.record.boot_id };
  }

  /** Makes a shim that has not written its pid yet give up; false when it has. */
  giveUp(): boolean {
    try {
      writeFileSync(join(this.path, "pid"), "given up\n", { flag: "wx", mode: 0o600 });
      return true;
    } catch {
      return readText(join(this.path, "pid")) === "given up\n";
    }
  }

  writtenExit(): { readonly code: number; readonly at: Date } | undefined {
    const file = join(this.path, "exit");
    const code = /^(\d+)\n$/.exec(readText(file) ?? "")?.[1];
    return code === undefined ? undefined : { code: Number(code), at: statSync(file).mtime };
  }

  settledExit(): InstanceExit | undefined {
    const text = readText(join(this.path, "ended.json"));
    if (text === undefined) return undefined;
    const exit = JSON.parse(text) as { code: number | null; out_of_memory: boolean; at: string };
    return { ...exit, at: new Date(exit.at) };
  }

  settle(exit: InstanceExit): void {
    replaceFile(join(this.path, "ended.json"), JSON.stringify(exit));
  }

  /** Throws this attempt's files away. */
  forget(): void {
    rmSync(this.path, { recursive: true, force: true });
  }

  /** Remembers that the platform itself ended it for its memory. */
  markOutOfMemory(): void {
    writeFileSync(join(this.path, "out-of-memory"), "");
  }

  wasMarkedOutOfMemory(): boolean {
    return existsSync(join(this.path, "out-of-memory"));
  }
}

/** The boot that processes started now belong to. */
export function currentBoot(): string {
  return identify(process.pid)?.boot_id ?? "";
}

function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const numbersIn = (folder: string): number[] =>
  namesIn(folder)
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
