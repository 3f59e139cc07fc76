import { chownSync, closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { InstanceKey } from "../../ports/runtime.ts";
import { InstanceFolder, type InstanceRecord } from "./instance-folder.ts";
import { namesIn, numbersIn, readObject, readText, replaceFile } from "./state-files.ts";

/**
 * `<root>/live/<workload>/<ordinal>/<attempt>/` holds `instance.json`, `pid` (the shim's stat line), `exit` (its code), `ended.json`
 * (how it ended, settled) and `output`. A surplus ordinal moves to `<root>/ended`, where its output can still be read for a while.
 * `<root>/attempts/<workload>` has the highest attempt of each ordinal whose folders are gone, so that no number comes twice.
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

  /** All with a folder, be it an empty one. */
  workloads(): string[] {
    return namesIn(this.#live);
  }

  hasAttempts(workloadId: string): boolean {
    return this.ordinals(workloadId).some((ordinal) => numbersIn(this.#live, workloadId, String(ordinal)).length > 0);
  }

  ordinals(workloadId: string): number[] {
    return numbersIn(this.#live, workloadId);
  }

  /** The newest attempt of each ordinal. */
  latest(workloadId: string): InstanceFolder[] {
    return this.ordinals(workloadId).flatMap((ordinal) => this.latestOf(workloadId, ordinal) ?? []);
  }

  /** The newest attempt that there is a record of. */
  latestOf(workloadId: string, ordinal: number): InstanceFolder | undefined {
    const parent = join(this.#live, workloadId, String(ordinal));
    for (const attempt of numbersIn(parent).sort((a, b) => b - a)) {
      const folder = InstanceFolder.read(join(parent, String(attempt)));
      if (folder !== undefined) return folder;
    }
    return undefined;
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
    try {
      mkdirSync(draft, { recursive: true, mode: 0o700 });
      const output = join(draft, "output");
      closeSync(openSync(output, "wx", 0o600));
      if (process.geteuid?.() === 0) chownSync(output, owner, owner);
      writeFileSync(join(draft, "instance.json"), JSON.stringify(record), { mode: 0o600 });
      renameSync(draft, path);
      return new InstanceFolder(path, record);
    } catch (error) {
      rmSync(draft, { recursive: true, force: true });
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOTEMPTY" || code === "EEXIST") return undefined;
      throw error;
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

  /** Throws one attempt's files away. */
  async forget({ path, record }: InstanceFolder): Promise<void> {
    await this.#keepCounts(record.workload_id);
    rmSync(path, { recursive: true, force: true });
  }

  async retire(workloadId: string, ordinal: number): Promise<void> {
    const name = join(workloadId, String(ordinal));
    const target = join(this.#ended, name);
    if (!existsSync(join(this.#live, name))) return;
    await this.#keepCounts(workloadId);
    rmSync(target, { recursive: true, force: true });
    mkdirSync(join(this.#ended, workloadId), { recursive: true, mode: 0o700 });
    renameSync(join(this.#live, name), target);
    writeFileSync(join(this.#ended, workloadId, "retired_at"), String(Date.now()));
  }

  /** Throws everything of a workload away; its counts too when it never comes back. */
  async forgetWorkload(workloadId: string, forGood: boolean): Promise<void> {
    // The folders tell the counts until they are gone, so a crash in between does no harm.
    if (forGood) rmSync(join(this.#attempts, workloadId), { force: true });
    else await this.#keepCounts(workloadId);
    for (const folder of [this.#live, this.#ended]) rmSync(join(folder, workloadId), { recursive: true, force: true });
  }

  /** Throws the files of surplus ordinals away that were stopped before `beforeMs`. */
  sweepEnded(beforeMs: number): void {
    for (const workloadId of namesIn(this.#ended)) {
      const folder = join(this.#ended, workloadId);
      // `retire` has kept the counts of what lies here.
      if (Number(readText(join(folder, "retired_at")) ?? 0) < beforeMs)
        rmSync(folder, { recursive: true, force: true });
    }
  }

  async #keepCounts(workloadId: string): Promise<void> {
    const counted = JSON.stringify(this.#counted(workloadId));
    const file = join(this.#attempts, workloadId);
    if (counted !== "{}" && counted !== readText(file)) await replaceFile(file, counted);
  }

  /** The highest attempt of each ordinal there ever was, by what is written down and by what lies here. */
  #counted(workloadId: string): Readonly<Record<number, number>> {
    const counted: Record<number, number> = { ...readObject(join(this.#attempts, workloadId)) };
    for (const root of [this.#live, this.#ended])
      for (const ordinal of numbersIn(root, workloadId))
        counted[ordinal] = Math.max(counted[ordinal] ?? 0, ...numbersIn(root, workloadId, String(ordinal)));
    // An ordinal whose folder is empty was never started.
    return Object.fromEntries(Object.entries(counted).filter(([, attempt]) => attempt > 0));
  }
}
