import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import type { Command } from "../../kit/exec.ts";
import { joinGroups, openCgroups, type Cgroups } from "../../sandbox/cgroups.ts";
import type { SandboxLimits } from "../../sandbox/spec.ts";
import { findProcesses } from "./find-processes.ts";

/** Control groups with the same limits for every instance below one folder; on a machine that lets us write none, they do nothing. */
export interface ControlGroups {
  of(id: string): ControlGroup;
  /** Removes the empty parents. Only when no instance has a group. */
  dismantle(): void;
}

/** What the processes of one instance may use together: a session may ask for as much memory as it likes. */
export interface ControlGroup {
  /** The command that joins the group before it becomes `command`. */
  enter(command: Command): Command;
  /** Puts a running server under the present limits, which it may have been started without. */
  take(mark: string, uid: number): void;
  /** Frees the group of a server that has ended. */
  remove(): Promise<void>;
}

export function openControlGroups(dir: string, limits: SandboxLimits): ControlGroups {
  const tag = createHash("sha256").update(dir).digest("hex").slice(0, 8);
  const cgroups = openCgroups(`berth-databases-${tag}`);
  return { of: (id) => groupOf(cgroups, id, limits), dismantle: () => cgroups.dismantle() };
}

function groupOf(cgroups: Cgroups, id: string, limits: SandboxLimits): ControlGroup {
  return {
    enter: (command) => joinGroups(cgroups.open(id, limits), command),
    take(mark, uid) {
      try {
        const files = cgroups.open(id, limits);
        // The postmaster first: whom it starts from then on is born into the group.
        const { postmaster } = findProcesses(mark, uid);
        if (postmaster === undefined || files.every((file) => membersOf(file).has(postmaster.pid))) return;
        join(files, postmaster.pid);
        for (const { pid } of findProcesses(mark, uid).others) join(files, pid);
      } catch {
        // A limit below what it uses now, or a server that has just ended: the limits hold from its next start on.
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
