import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import type { Command } from "../../kit/exec.ts";
import { joinGroups, openCgroups, type Cgroups } from "../../sandbox/cgroups.ts";
import type { SandboxLimits } from "../../sandbox/spec.ts";
import { findProcesses } from "./find-processes.ts";
import { hasMemoryLimit, limitMemory, withMemoryLimit } from "./memory-limit.ts";

/** Control groups below one folder, with the same limits for every instance. Does nothing on a machine where they can't be written. */
export interface ControlGroups {
  of(id: string): ControlGroup;
  /** Removes the empty parent groups. Call it only when no instance has a group. */
  dismantle(): void;
}

/** Limits what the processes of one instance use together, and the memory of each: one session may take half of the instance's. */
export interface ControlGroup {
  /** Returns a command that joins the group and then executes `command`. */
  enter(command: Command): Command;
  /** Puts a running server under the current limits, in case it was started without them. */
  take(mark: string, uid: number): Promise<void>;
  remove(): Promise<void>;
}

export function openControlGroups(dir: string, limits: SandboxLimits): ControlGroups {
  const tag = createHash("sha256").update(dir).digest("hex").slice(0, 8);
  const cgroups = openCgroups(`berth-databases-${tag}`);
  return { of: (id) => groupOf(cgroups, id, limits), dismantle: () => cgroups.dismantle() };
}

function groupOf(cgroups: Cgroups, id: string, limits: SandboxLimits): ControlGroup {
  const sessionBytes = limits.memoryBytes / 2;
  return {
    enter: (command) => joinGroups(cgroups.open(id, limits), withMemoryLimit(sessionBytes, command)),
    async take(mark, uid) {
      try {
        const files = cgroups.open(id, limits);
        // Move the postmaster first: processes that it starts afterwards are in the group from the start.
        const { postmaster } = findProcesses(mark, uid);
        if (postmaster !== undefined && !hasMemoryLimit(postmaster.pid)) {
          await limitMemory({ ...postmaster, uid }, sessionBytes);
          for (const { pid } of findProcesses(mark, uid).others) await limitMemory({ pid, uid }, sessionBytes);
        }
        if (postmaster === undefined || files.every((file) => membersOf(file).has(postmaster.pid))) return;
        join(files, postmaster.pid);
        for (const { pid } of findProcesses(mark, uid).others) join(files, pid);
      } catch {
        // The limit is below the current usage, or the server has just stopped; the limits apply from its next start on.
      }
    },
    remove: () => cgroups.remove(id),
  };
}

function membersOf(file: string): ReadonlySet<number> {
  return new Set(readFileSync(file, "utf8").split("\n").map(Number));
}

function join(files: readonly string[], pid: number): void {
  for (const file of files) writeFileSync(file, String(pid));
}
