import { chown, stat } from "node:fs/promises";
import { run, runOk, type Command } from "../kit/exec.ts";
import type { SandboxParts } from "./spec.ts";

/** What of the machine a confined command sees beside the system's programs. Every path is the host's, inside too. */
export interface Shown {
  readonly writable: readonly string[];
  readonly readable?: readonly string[];
}

/** Runs the platform's own programs on what tenants sent: as a user of its own, with nothing of the machine but what it is shown. */
export interface Confinement {
  /** The command in namespaces of its own, without a network. Its descriptors and environment stay; it ends with its parent. */
  confine(command: Command, shown: Shown, cwd: string): Command;
  /** Gives a folder, with everything in it, to the user that confined commands run as. Idempotent. */
  own(dir: string): Promise<void>;
  /** Gives one new file or folder to that user. */
  ownOne(path: string): Promise<void>;
}

/** Nothing is confined: for machines without namespaces, and for tests. */
export const unconfined: Confinement = {
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
  const user = isRoot ? [] : ["--unshare-user"];
  const become = isRoot ? becomeUser(parts.setpriv as string, uid) : [];
  const confine = (command: Command, shown: Shown, cwd: string): Command => {
    const words = [
      ...user,
      ...namespaces,
      ...systemFolders,
      ...folders(shown),
      "--remount-ro",
      "/",
      "--chdir",
      cwd,
      "--",
    ];
    return { file: bwrap, args: [...words, ...become, command.file, ...command.args] };
  };
  const probe = confine({ file: program, args: ["--version"] }, { writable: [] }, "/");
  const tried = await run(probe, { timeoutMs: 10_000 }).catch(() => undefined);
  if (tried?.exitCode !== 0) return unconfined;
  if (!isRoot) return { ...unconfined, confine };
  // Depth first: the folder itself comes last, so that one that belongs to the user is done. -h: a link that was planted leads nowhere.
  const give = ["-depth", "!", "-uid", `${uid}`, "-exec", "chown", "-h", `${uid}:${uid}`, "{}", "+"];
  const own = async (dir: string) => {
    if ((await stat(dir)).uid !== uid) await runOk({ file: "find", args: [dir, ...give] });
  };
  return { confine, own, ownOne: (path) => chown(path, uid, uid) };
}

const namespaces = [
  "--unshare-pid",
  "--unshare-net",
  "--unshare-ipc",
  "--unshare-uts",
  "--unshare-cgroup-try",
  "--die-with-parent",
];

const systemFolders = [
  ...["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache"].flatMap((path) => ["--ro-bind-try", path, path]),
  ...["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"],
];

// Parents that bubblewrap makes by itself as root are closed to others, so each is made first with its mode.
function folders({ writable, readable = [] }: Shown): string[] {
  const parents = [...writable, ...readable].flatMap((path) => {
    const names = path.split("/").slice(1, -1);
    return names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`);
  });
  return [
    ...[...new Set(parents)].flatMap((path) => ["--perms", "0755", "--dir", path]),
    ...writable.flatMap((path) => ["--bind", path, path]),
    ...readable.flatMap((path) => ["--ro-bind", path, path]),
  ];
}

function becomeUser(setpriv: string, uid: number): string[] {
  const nothing = ["--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"];
  return [setpriv, "--reuid", `${uid}`, "--regid", `${uid}`, ...nothing, "--"];
}
