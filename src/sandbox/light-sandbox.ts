import type { Command } from "../kit/exec.ts";
import type { SandboxBind } from "./spec.ts";

/**
 * A sandbox for the platform's own programs that read tenants' data: git, PostgreSQL and its clients. It has namespaces and sees only the
 * system's programs and its binds. To start in a few milliseconds, it omits the network, limits and system call filter that tenants' code
 * gets.
 */
export interface LightSandbox {
  readonly bwrap: string;
  /** The user that root switches to; null: the sandbox runs as Berth's own user, in a user namespace. */
  readonly user: { readonly uid: number; readonly setpriv: string } | null;
  readonly binds: readonly SandboxBind[];
  /** Whether it has a /tmp in memory. */
  readonly hasTmp?: boolean;
  /** Default: no network. */
  readonly network?: "host";
  /** Default: an IPC namespace of its own. */
  readonly ipc?: "host";
  /** Whether the sandbox survives the process that started it. */
  readonly isDetached?: boolean;
  /** Default: /. */
  readonly cwd?: string;
}

/** Wraps `command` to run in a light sandbox. It keeps its descriptors and environment. */
export function lightCommand(sandbox: LightSandbox, command: Command): Command {
  const { bwrap, user, network, ipc, isDetached = false, hasTmp = false, cwd = "/" } = sandbox;
  const args = [
    ...(user === null ? ["--unshare-user"] : []),
    ...["--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"],
    ...(network === "host" ? [] : ["--unshare-net"]),
    ...(ipc === "host" ? [] : ["--unshare-ipc"]),
    ...(isDetached ? [] : ["--die-with-parent"]),
    ...system,
    ...(hasTmp ? memory("/tmp") : []),
    ...bindArguments(sandbox.binds),
    ...["--remount-ro", "/", "--chdir", cwd, "--"],
    ...(user === null ? [] : becomeUser(user)),
  ];
  return { file: bwrap, args: [...args, command.file, ...command.args] };
}

const shown = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/ssl/openssl.cnf"];
const system = [
  ...["/etc", "/etc/ssl"].flatMap((path) => ["--perms", "0755", "--dir", path]),
  ...shown.flatMap((path) => ["--ro-bind-try", path, path]),
  ...["--proc", "/proc", "--dev", "/dev"],
  ...memory("/dev/shm"),
];

function memory(path: string): string[] {
  return ["--perms", "1777", "--tmpfs", path];
}

// Other users can't enter the parents that bubblewrap, as root, creates by itself, so create each one first with mode 0755.
function bindArguments(binds: readonly SandboxBind[]): string[] {
  const parents = binds.flatMap(({ target }) => {
    const names = target.split("/").slice(1, -1);
    return names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`);
  });
  return [
    ...[...new Set(parents)].flatMap((path) => ["--perms", "0755", "--dir", path]),
    ...binds.flatMap(({ source, target, writable }) => [writable ? "--bind" : "--ro-bind", source, target]),
  ];
}

function becomeUser({ uid, setpriv }: { uid: number; setpriv: string }): string[] {
  const nothing = ["--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"];
  return [setpriv, "--reuid", `${uid}`, "--regid", `${uid}`, ...nothing, "--"];
}
