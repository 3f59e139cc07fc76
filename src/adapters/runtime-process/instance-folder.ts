import { existsSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { InstanceAddress, InstanceExit, InstanceKey, WorkloadLimits } from "../../ports/runtime.ts";
import { identify, type ProcessIdentity } from "../../kit/processes.ts";
import { readObject, readText } from "./state-files.ts";

/** What is stored about an instance before it starts. It holds no secret: the environment exists in the process alone. */
export interface InstanceRecord extends InstanceKey {
  readonly project_id: string;
  readonly image_ref: string;
  readonly sandbox_id: string;
  readonly boot_id: string;
  readonly started_at: string;
  readonly limits: WorkloadLimits;
  readonly address: InstanceAddress | null;
}

/** One attempt's files. */
export class InstanceFolder {
  readonly path: string;
  readonly record: InstanceRecord;
  #shim: ProcessIdentity | undefined;
  #exit: InstanceExit | undefined;
  #isExitRead = false;

  constructor(path: string, record: InstanceRecord) {
    this.path = path;
    this.record = record;
  }

  /** Undefined when a power cut left no record of it: then it never started, or it ended with the machine. */
  static read(path: string): InstanceFolder | undefined {
    const record = readObject(join(path, "instance.json"));
    return record ? new InstanceFolder(path, record as InstanceRecord) : undefined;
  }

  /** Completes the record. It needs no flush to the disk: after a power cut nothing of it runs. */
  withAddress(address: InstanceAddress | null): InstanceFolder {
    const record = { ...this.record, address };
    const file = join(this.path, "instance.json");
    writeFileSync(`${file}.new`, JSON.stringify(record), { mode: 0o600 });
    renameSync(`${file}.new`, file);
    return new InstanceFolder(this.path, record);
  }

  /** The shim, if it has started: proc(5) field 1 is the pid, field 22 the start time. */
  shim(): ProcessIdentity | undefined {
    this.#shim ??= this.#readShim();
    return this.#shim;
  }

  #readShim(): ProcessIdentity | undefined {
    const text = readText(join(this.path, "pid"));
    if (!text?.endsWith("\n")) return undefined;
    const pid = Number.parseInt(text, 10);
    const startTime = text.slice(text.lastIndexOf(")") + 2).split(" ")[19];
    if (!Number.isInteger(pid) || startTime === undefined) return undefined;
    return { pid, start_time: startTime, boot_id: this.record.boot_id };
  }

  /** Makes a shim that has not written its pid yet give up; false when it has, or when that cannot be known now. */
  giveUp(): boolean {
    try {
      writeFileSync(join(this.path, "pid"), "given up\n", { flag: "wx", mode: 0o600 });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") return false;
      // A file without a pid is of an earlier giving up, or of a shim that ended because the disk was full.
      return this.shim() === undefined;
    }
  }

  writtenExit(): { readonly code: number; readonly at: Date } | undefined {
    const file = join(this.path, "exit");
    const code = /^(\d+)\n$/.exec(readText(file) ?? "")?.[1];
    return code === undefined ? undefined : { code: Number(code), at: statSync(file).mtime };
  }

  /** How it ended, where that was written down. Read once: from then on only `settle` writes it. */
  settledExit(): InstanceExit | undefined {
    if (!this.#isExitRead) this.#exit = this.#readExit();
    this.#isExitRead = true;
    return this.#exit;
  }

  #readExit(): InstanceExit | undefined {
    const file = join(this.path, "ended.json");
    const exit = readObject(file) as { code: number | null; out_of_memory: boolean; at: string } | null | undefined;
    if (exit === undefined) return undefined;
    // A power cut has taken what was written. That it ended is known from the file being there.
    if (exit === null) return { code: null, out_of_memory: false, at: statSync(file).mtime };
    return { ...exit, at: new Date(exit.at) };
  }

  /** Records how the attempt ended. Does nothing on a full disk: the next look tries again. */
  settle(exit: InstanceExit): void {
    const file = join(this.path, "ended.json");
    try {
      writeFileSync(`${file}.new`, JSON.stringify(exit), { mode: 0o600 });
      renameSync(`${file}.new`, file);
      this.#exit = exit;
    } catch {
      // It stays unsettled.
    }
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
  const own = identify(process.pid);
  if (own === undefined) throw new Error("/proc cannot be read");
  return own.boot_id;
}
