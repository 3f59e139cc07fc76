import { chmodSync, closeSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run, systemPath } from "../kit/exec.ts";
import type { Composed, Containment, Level } from "./compose.ts";
import type { SandboxOptions, SandboxSpec } from "./spec.ts";

export interface ContainmentFindings {
  readonly found: Containment;
  readonly isRoot: boolean;
  readonly hasSeccompTable: boolean;
  /** What the best level that failed said, for the remedy. */
  readonly reason: string;
}

type ComposeProbe = (containment: Containment, spec: SandboxSpec) => Composed;

// Any uid will do that owns nothing here.
const probeUid = 19_999;

/** Enters real sandboxes, from the strongest kind down, until one can read its release, write its storage, and start a process. */
export async function probeContainment(
  options: SandboxOptions,
  composeProbe: ComposeProbe,
): Promise<ContainmentFindings> {
  const isRoot = process.geteuid?.() === 0;
  const folder = join(options.stateDir, `probe-${process.pid}-${Math.random().toString(36).slice(2)}`);
  const spec = layOut(folder);
  let reason = "";
  const works = async (containment: Containment) => {
    const result = await enter(composeProbe(containment, spec));
    if (result !== undefined && reason === "") reason = result;
    return result === undefined;
  };
  try {
    for (const level of levels(options, isRoot)) {
      const found = await strongest(level, works);
      if (found) return { found, isRoot, hasSeccompTable: process.arch === "x64" || process.arch === "arm64", reason };
    }
    throw new Error(`no process can be started for an application on this machine: ${reason}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function levels({ parts }: SandboxOptions, isRoot: boolean): Level[] {
  const all: Level[] = [];
  if (isRoot && parts.bwrap && parts.setpriv) all.push("staged", "privileged");
  if (parts.bwrap) all.push("own_user");
  if (isRoot && parts.setpriv) all.push("switched");
  return [...all, "bare"];
}

type Feature = "pid" | "seccomp" | "disableUserns";
const features: readonly Feature[] = ["pid", "seccomp", "disableUserns"];
const none = { pid: false, seccomp: false, disableUserns: false };

/** All features if they work together, else each one that works on top of those before it; undefined when not even none does. */
async function strongest(
  level: Level,
  works: (containment: Containment) => Promise<boolean>,
): Promise<Containment | undefined> {
  const hasNamespaces = level === "staged" || level === "own_user" || level === "privileged";
  if (!hasNamespaces) return (await works({ level, ...none })) ? { level, ...none } : undefined;
  const full = { level, pid: true, seccomp: true, disableUserns: level !== "privileged" };
  if (await works(full)) return full;
  let found: Containment = { level, ...none };
  if (!(await works(found))) return undefined;
  for (const feature of features) {
    const more = { ...found, [feature]: full[feature] };
    if (full[feature] && (await works(more))) found = more;
  }
  return found;
}

const mark = "berth-probe";

function layOut(folder: string): SandboxSpec {
  const app = join(folder, "app");
  const storage = join(folder, "storage");
  for (const path of [app, storage]) mkdirSync(path, { recursive: true });
  writeFileSync(join(app, "file"), mark);
  chmodSync(storage, 0o777);
  return {
    id: `probe-${process.pid}-${Math.random().toString(36).slice(2)}`,
    uid: probeUid,
    argv: ["/bin/sh", "-c", 'cat file && touch "$STORAGE_DIR/written" && (:)'],
    env: {},
    app: { source: app, writable: false },
    storageDir: storage,
    binds: [],
    network: { kind: "none" },
    limits: null,
  };
}

/** Undefined when the sandbox worked, else what it said. */
async function enter(composed: Composed): Promise<string | undefined> {
  const { command, fds } = composed;
  try {
    const result = await run(command, { env: { PATH: systemPath }, cwd: "/", fds, timeoutMs: 20_000 });
    if (result.exitCode === 0 && result.stdout === mark) return undefined;
    return result.stderr.trim().slice(-500) || `it ended with ${result.exitCode ?? result.signal}`;
  } catch (fault) {
    return String(fault);
  } finally {
    for (const fd of fds) closeSync(fd);
  }
}
