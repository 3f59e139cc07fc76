import { chmodSync, closeSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run, systemPath } from "../kit/exec.ts";
import type { Composed, Containment } from "./compose.ts";
import type { SandboxOptions, SandboxSpec } from "./spec.ts";

export type ContainmentFindings = Awaited<ReturnType<typeof probeContainment>>;

type ComposeProbe = (containment: Containment, spec: SandboxSpec) => Composed;

// Any uid that owns nothing on this machine.
const probeUid = 19_999;

/** Starts real sandboxes, strongest containment first, until one can read its release, write its storage, and start a process. */
export async function probeContainment(options: SandboxOptions, composeProbe: ComposeProbe) {
  const isRoot = process.geteuid?.() === 0;
  const folder = join(options.stateDir, `probe-${process.pid}-${Math.random().toString(36).slice(2)}`);
  layOut(folder);
  let reason = "";
  try {
    for (const found of candidates(options, isRoot)) {
      const fault = await enter(composeProbe(found, specOf(folder, found)));
      if (fault === undefined)
        return {
          found,
          isRoot,
          /** The error of the strongest containment, if it failed; used for the remedy. */
          reason,
        };
      // Of the ways that isolate, the last one needs the least: its fault is what isolation fails for.
      if (found.level === "isolated" || reason === "") reason = fault;
    }
    throw new Error(`no process can be started for an application on this machine: ${reason}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function candidates({ parts }: SandboxOptions, isRoot: boolean): Containment[] {
  const canIsolate = parts.bwrap !== null && (!isRoot || parts.setpriv !== null);
  const isolated = { level: "isolated", switchesUser: isRoot } as const;
  const layers = isRoot ? (["disk", "memory", null] as const) : (["memory", null] as const);
  const bare = { level: "bare", disableUserns: false, layer: null } as const;
  return [
    ...(canIsolate ? layers.map((layer) => ({ ...isolated, layer, disableUserns: true })) : []),
    // bubblewrap before 0.8 can't disable user namespaces; the system call filter still refuses new ones.
    ...(canIsolate ? layers.map((layer) => ({ ...isolated, layer, disableUserns: false })) : []),
    ...(isRoot && parts.setpriv !== null ? [{ ...bare, switchesUser: true }] : []),
    { ...bare, switchesUser: false },
  ];
}

const mark = "berth-probe";

function layOut(folder: string): void {
  for (const name of ["app", "storage"]) mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(join(folder, "app", "file"), mark);
  chmodSync(join(folder, "storage"), 0o777);
}

function specOf(folder: string, { layer }: Containment): SandboxSpec {
  const writes = layer === null ? "" : "touch written &&";
  return {
    id: `probe-${process.pid}-${Math.random().toString(36).slice(2)}`,
    uid: probeUid,
    argv: ["/bin/sh", "-c", `cat file && ${writes} touch "$STORAGE_DIR/written" && (:)`],
    env: {},
    app: { source: join(folder, "app"), access: "private" },
    storageDir: join(folder, "storage"),
    binds: [],
    network: { kind: "none" },
    limits: null,
  };
}

/** Runs the probe; returns undefined if it worked, else its error output. */
async function enter(composed: Composed): Promise<string | undefined> {
  const { command, fds } = composed;
  try {
    const result = await run(command, { env: { PATH: systemPath }, cwd: "/", fds, timeoutMs: 60_000 });
    if (result.exitCode === 0 && result.stdout === mark) return undefined;
    return result.stderr.trim().slice(-500) || `it ended with ${result.exitCode ?? result.signal}`;
  } catch (fault) {
    return String(fault);
  } finally {
    for (const fd of fds) closeSync(fd);
  }
}
