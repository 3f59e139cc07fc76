import { chownSync, closeSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { InstanceKey } from "../../ports/runtime.ts";
import { InstanceFolder, type InstanceRecord } from "./instance-folder.ts";
import { namesIn, numbersIn } from "./state-files.ts";

const keptAttempts = 3;

/**
 * `<root>/live/<workload>/<ordinal>/<attempt>/` holds `instance.json`, `pid` (the shim's stat line), `exit` (its code), `ended.json` (how
 * it ended, settled) and `output`. The newest attempts are read once and then kept in memory, because only one process uses the folder.
 */
export class InstanceFolders {
  readonly #live: string;
  /** The newest attempt of each ordinal that has a record, by workload. */
  readonly #latest = new Map<string, Map<number, InstanceFolder>>();

  constructor(root: string) {
    this.#live = join(root, "live");
    mkdirSync(this.#live, { recursive: true, mode: 0o700 });
    for (const workloadId of this.workloads()) this.#read(workloadId);
  }

  /** Returns all workloads that have a folder, even an empty one. */
  workloads(): string[] {
    return namesIn(this.#live);
  }

  /** Returns the newest attempts of all workloads. */
  all(): InstanceFolder[] {
    return [...this.#latest.values()].flatMap((ordinals) => [...ordinals.values()]);
  }

  /** Returns the newest attempt of each ordinal, or of the given ordinals. */
  latest(workloadId: string, ordinals?: readonly number[]): InstanceFolder[] {
    const known = [...(this.#latest.get(workloadId)?.values() ?? [])];
    return known.filter(({ record }) => ordinals === undefined || ordinals.includes(record.ordinal));
  }

  latestOf(workloadId: string, ordinal: number): InstanceFolder | undefined {
    return this.#latest.get(workloadId)?.get(ordinal);
  }

  /** Returns the instance's files; undefined when they have been deleted. */
  find(key: InstanceKey): InstanceFolder | undefined {
    const latest = this.latestOf(key.workload_id, key.ordinal);
    if (latest?.record.attempt === key.attempt) return latest;
    return InstanceFolder.read(join(this.#live, key.workload_id, String(key.ordinal), String(key.attempt)));
  }

  /** Creates an attempt with all its files in one rename. `owner` may append to its output. */
  claim(record: InstanceRecord, owner: number): InstanceFolder {
    const parent = join(this.#live, record.workload_id, String(record.ordinal));
    const draft = join(parent, `draft-${process.pid}-${Math.random().toString(36).slice(2)}`);
    const path = join(parent, String(record.attempt));
    try {
      mkdirSync(draft, { recursive: true, mode: 0o700 });
      const output = join(draft, "output");
      closeSync(openSync(output, "wx", 0o600));
      if (process.geteuid?.() === 0) chownSync(output, owner, owner);
      writeFileSync(join(draft, "instance.json"), JSON.stringify(record), { mode: 0o600 });
      // A power failure may have left a folder without a record.
      if (InstanceFolder.read(path) === undefined) rmSync(path, { recursive: true, force: true });
      renameSync(draft, path);
    } catch (error) {
      rmSync(draft, { recursive: true, force: true });
      throw error;
    }
    return this.keep(new InstanceFolder(path, record));
  }

  /** Makes this the newest attempt of its ordinal, and deletes all but the last three. */
  keep(folder: InstanceFolder): InstanceFolder {
    const { workload_id, ordinal } = folder.record;
    const ordinals = this.#latest.get(workload_id) ?? new Map<number, InstanceFolder>();
    this.#latest.set(workload_id, ordinals.set(ordinal, folder));
    const parent = join(this.#live, workload_id, String(ordinal));
    const old = numbersIn(parent).sort((a, b) => b - a);
    for (const attempt of old.slice(keptAttempts))
      rmSync(join(parent, String(attempt)), { recursive: true, force: true });
    return folder;
  }

  forgetAttempt({ path, record }: InstanceFolder): void {
    rmSync(path, { recursive: true, force: true });
    this.#read(record.workload_id);
  }

  /** Deletes everything of a workload, or of the given ordinals. */
  forget(workloadId: string, ordinals?: readonly number[]): void {
    const folder = join(this.#live, workloadId);
    for (const path of ordinals?.map((ordinal) => join(folder, String(ordinal))) ?? [folder])
      rmSync(path, { recursive: true, force: true });
    this.#read(workloadId);
    if (this.latest(workloadId).length > 0) return;
    rmSync(folder, { recursive: true, force: true });
    this.#latest.delete(workloadId);
  }

  #read(workloadId: string): void {
    const found = numbersIn(this.#live, workloadId).flatMap((ordinal) => this.#newest(workloadId, ordinal) ?? []);
    this.#latest.set(workloadId, new Map(found.map((folder) => [folder.record.ordinal, folder])));
  }

  /** Returns the newest attempt that has a record. */
  #newest(workloadId: string, ordinal: number): InstanceFolder | undefined {
    const parent = join(this.#live, workloadId, String(ordinal));
    for (const attempt of numbersIn(parent).sort((a, b) => b - a)) {
      const folder = InstanceFolder.read(join(parent, String(attempt)));
      if (folder !== undefined) return folder;
    }
    return undefined;
  }
}
