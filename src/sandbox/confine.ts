import { lchown, stat } from "node:fs/promises";
import { run, runOk, type Command } from "../kit/exec.ts";
import { lightCommand } from "./light-sandbox.ts";
import type { SandboxParts } from "./spec.ts";

/** What a confined command sees besides the system's programs. Every path is the host's, also inside. */
export interface Shown {
  readonly writable: readonly string[];
  readonly readable?: readonly string[];
  /** Host files that appear, read-only, at another path. */
  readonly placed?: readonly { readonly source: string; readonly target: string }[];
  /** Whether the command survives its parent; then only a signal to its process group stops it. */
  readonly isDetached?: boolean;
}

/** Runs the platform's own programs on tenants' data, as a separate user that sees only what it is shown. */
export interface Confinement {
  /** Whether confined commands have only a loopback of their own and no other network. */
  readonly hasOwnNetwork: boolean;
  /** Runs a command in namespaces of its own, without a network. Keeps descriptors and environment; dies with its parent unless detached. */
  confine(command: Command, shown: Shown, cwd: string): Command;
  /** Changes the owner of a folder and everything in it to the user that confined commands run as. Idempotent. */
  own(dir: string): Promise<void>;
  /** Changes the owner of one new file or folder to that user. */
  ownOne(path: string): Promise<void>;
}

/** Confines nothing: for machines without namespaces, and for tests. */
export const unconfined: Confinement = {
  hasOwnNetwork: false,
  confine: (command) => command,
  own: async () => {},
  ownOne: async () => {},
};

/**
 * Creates a light confinement for short runs of `program`: it costs a few milliseconds, a full sandbox with a control group costs tens. If
 * Berth is root, commands run as `uid`. Tries it once; if that fails (the machine forbids namespaces, `program` is not part of the system),
 * nothing is confined.
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
  const tried = await run(probe, { timeoutMs: 60_000 }).catch(() => undefined);
  if (tried?.exitCode !== 0) return unconfined;
  if (!isRoot) return { ...unconfined, hasOwnNetwork: true, confine };
  // Depth first: the folder itself changes last, so if the user owns it, everything below is done. -h: chown must not follow a planted link.
  const give = ["-depth", "!", "-uid", `${uid}`, "-exec", "chown", "-h", `${uid}:${uid}`, "{}", "+"];
  const own = async (dir: string) => {
    if ((await stat(dir)).uid !== uid) await runOk({ file: "find", args: [dir, ...give] });
  };
  return { hasOwnNetwork: true, confine, own, ownOne: (path) => lchown(path, uid, uid) };
}
