import { lchown, stat } from "node:fs/promises";
import { run, runOk, type Command } from "../kit/exec.ts";
import { lightCommand } from "./light-sandbox.ts";
import type { SandboxParts } from "./spec.ts";

/** What of the machine a confined command sees beside the system's programs. Every path is the host's, inside too. */
export interface Shown {
  readonly writable: readonly string[];
  readonly readable?: readonly string[];
  /** Files of the host that are seen, read-only, at another place. */
  readonly placed?: readonly { readonly source: string; readonly target: string }[];
  /** The command goes on when its parent has died; ending it takes a signal to its process group. */
  readonly isDetached?: boolean;
}

/** Runs the platform's own programs on what tenants sent: as a user of its own, with nothing of the machine but what it is shown. */
export interface Confinement {
  /** Confined commands have a loopback of their own and no other network. */
  readonly hasOwnNetwork: boolean;
  /** The command in namespaces of its own, without a network. Its descriptors and environment stay; it ends with its parent unless detached. */
  confine(command: Command, shown: Shown, cwd: string): Command;
  /** Gives a folder, with everything in it, to the user that confined commands run as. Idempotent. */
  own(dir: string): Promise<void>;
  /** Gives one new file or folder to that user. */
  ownOne(path: string): Promise<void>;
}

/** Nothing is confined: for machines without namespaces, and for tests. */
export const unconfined: Confinement = {
  hasOwnNetwork: false,
  confine: (command) => command,
  own: async () => {},
  ownOne: async () => {},
};

/**
 * A light sandbox for short runs of `program`: a few milliseconds instead of the tens that a full one with a control group takes. Root runs
 * it as `uid`. Tries it out; where that fails (the machine forbids namespaces, the program is no part of the system) nothing is confined.
 */
export async function createConfinement(
  parts: Pick<SandboxParts, "bwrap" | "setpriv">,
  { uid, program }: { readonly uid: number; readonly program: string },
): Promise<Confinement> {
  const { bwrap } = parts;
  const isRoot = process.geteuid?.() === 0;
  if (bwrap === null || (isRoot && parts.setpriv === null)) return unconfined;
  const user = isRoot ? { uid, setpriv: parts.setpriv as string } : null;
  const confine: Confinement["confine"] = (command, shown, cwd) => {
    const { writable, readable = [], placed = [], isDetached = false } = shown;
    const same = (isWritable: boolean) => (path: string) => ({ source: path, target: path, writable: isWritable });
    const elsewhere = placed.map((file) => ({ ...file, writable: false }));
    const binds = [...writable.map(same(true)), ...readable.map(same(false)), ...elsewhere];
    return lightCommand({ bwrap, user, binds, hasTmp: true, isDetached, cwd }, command);
  };
  const probe = confine({ file: program, args: ["--version"] }, { writable: [] }, "/");
  const tried = await run(probe, { timeoutMs: 10_000 }).catch(() => undefined);
  if (tried?.exitCode !== 0) return unconfined;
  if (!isRoot) return { ...unconfined, hasOwnNetwork: true, confine };
  // Depth first: the folder itself comes last, so that one that belongs to the user is done. -h: a link that was planted leads nowhere.
  const give = ["-depth", "!", "-uid", `${uid}`, "-exec", "chown", "-h", `${uid}:${uid}`, "{}", "+"];
  const own = async (dir: string) => {
    if ((await stat(dir)).uid !== uid) await runOk({ file: "find", args: [dir, ...give] });
  };
  return { hasOwnNetwork: true, confine, own, ownOne: (path) => lchown(path, uid, uid) };
}
