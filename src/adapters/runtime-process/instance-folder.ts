import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { InstanceAddress, InstanceExit, InstanceKey, WorkloadLimits } from "../../ports/runtime.ts";
import { identify, type ProcessIdentity } from "../../kit/processes.ts";
import { replaceFile } from "../../kit/whole-file.ts";
import { readObject, readText } from "./state-files.ts";

/** The stored record of an instance, written before it starts. It holds no secrets: the environment exists only in the process. */
export interface InstanceRecord extends InstanceKey {
  readonly project_id: string;
  readonly image_ref: string;
  readonly sandbox_id: string;
  readonly boot_id: string;
  readonly started_at: string;
  readonly limits: WorkloadLimits;
  readonly address: InstanceAddress | null;
}

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

  /** Returns undefined when a power failure left no record: the attempt never started, or stopped with the machine. */
  static read(path: string): InstanceFolder | undefined {
    const record = readObject(join(path, "instance.json"));
    return record ? new InstanceFolder(path, record as InstanceRecord) : undefined;
  }

  /** Adds the address to the record. Needs no flush to disk: after a power failure, nothing of the attempt is running. */
  withAddress(address: InstanceAddress | null): InstanceFolder {
    const record = { ...this.record, address };
    replaceFile(join(this.path, "instance.json"), JSON.stringify(record));
    return new InstanceFolder(this.path, record);
  }

  /** Returns the shim if it has started. In proc(5), field 1 is the pid and field 22 the start time. */
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

  /** Cancels the start if the shim has not written its pid yet. Returns false if it has, or if that can't be determined now. */
  giveUp(): boolean {
    try {
      writeFileSync(join(this.path, "pid"), "given up\n", { flag: "wx", mode: 0o600 });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") return false;
      // A file without a pid was left by an earlier cancellation, or by a shim that exited because the disk was full.
      return this.shim() === undefined;
    }
  }

  writtenExit(): { readonly code: number; readonly at: Date } | undefined {
    const file = join(this.path, "exit");
    const code = /^(\d+)\n$/.exec(readText(file) ?? "")?.[1];
    return code === undefined ? undefined : { code: Number(code), at: statSync(file).mtime };
  }

  /** Returns how the attempt ended, if recorded. Reads the file once; after that, only `settle` changes the result. */
  settledExit(): InstanceExit | undefined {
    if (!this.#isExitRead) this.#exit = this.#readExit();
    this.#isExitRead = true;
    return this.#exit;
  }

  #readExit(): InstanceExit | undefined {
    const file = join(this.path, "ended.json");
    const exit = readObject(file) as { code: number | null; out_of_memory: boolean; at: string } | null | undefined;
    if (exit === undefined) return undefined;
    // A power failure emptied the file. Its existence still proves that the attempt ended.
    if (exit === null) return { code: null, out_of_memory: false, at: statSync(file).mtime };
    return { ...exit, at: new Date(exit.at) };
  }

  /** Records how the attempt ended. Does nothing on a full disk: the next check tries again. */
  settle(exit: InstanceExit): void {
    try {
      replaceFile(join(this.path, "ended.json"), JSON.stringify(exit));
      this.#exit = exit;
    } catch {
      // The attempt stays unsettled.
    }
  }

  /** Records that the platform killed the instance because of its memory. */
  markOutOfMemory(): void {
    writeFileSync(join(this.path, "out-of-memory"), "");
  }

  /** Whether the shim was asked to end, too, as by systemd, which signals every process of the service. */
  wasStopped(): boolean {
    return existsSync(join(this.path, "stopped"));
  }

  wasMarkedOutOfMemory(): boolean {
    return existsSync(join(this.path, "out-of-memory"));
  }
}

export function currentBoot(): string {
  const own = identify(process.pid);
  if (own === undefined) throw new Error("/proc cannot be read");
  return own.boot_id;
}
