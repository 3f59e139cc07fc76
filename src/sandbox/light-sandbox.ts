import type { Command } from "../kit/exec.ts";
import type { SandboxBind } from "./spec.ts";

/**
 * A sandbox for the platform's own programs, which read what tenants made: git, PostgreSQL and its clients. It has namespaces and nothing of
 * the machine but the system's programs and its binds; a network, limits and a system call filter, which code of tenants gets besides, are
 * left out, so that it costs a few milliseconds.
 */
export interface LightSandbox {
  readonly bwrap: string;
  /** Root becomes this user; null: the sandbox runs as the user that Berth runs as, in a user namespace. */
  readonly user: { readonly uid: number; readonly setpriv: string } | null;
  readonly binds: readonly SandboxBind[];
  /** Whether it has a /tmp, in memory. */
  readonly hasTmp?: boolean;
  /** Default none. */
  readonly network?: "host";
  /** Default its own. */
  readonly ipc?: "host";
  /** The sandbox goes on when the process that started it has ended. */
  readonly isDetached?: boolean;
  /** Default /. */
  readonly cwd?: string;
}

/** The command that runs `command` in a light sandbox. Descriptors and environment stay as they are. */
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

// Parents that bubblewrap makes by itself as root are closed to others, so each is made first with its mode.
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
