import { dirname } from "node:path";
import { run, type Command } from "../../kit/exec.ts";
import { instanceFiles } from "./instance-files.ts";

/** How a server's processes are kept apart from the rest of the machine. */
export interface Confinement {
  readonly binDir: string;
  /** The bubblewrap program; null where it is missing or cannot be used: then nothing but the user id separates. */
  readonly bwrap: string | null;
  /** The user the server runs as; null is the current one. */
  readonly uid: number | null;
}

/** Whether bubblewrap works here, really tried: a kernel or a container around us may forbid it. */
export async function confinementWorks(confinement: Confinement): Promise<boolean> {
  if (confinement.bwrap === null) return false;
  const args = [...namespaces(confinement), ...systemFolders(confinement), "--", "/usr/bin/env", "true"];
  const result = await run({ file: confinement.bwrap, args }, { timeoutMs: 10_000 }).catch(() => undefined);
  return result?.exitCode === 0;
}

/** The folders of an instance as its server sees them. */
export interface Places {
  readonly binDir: string;
  readonly data: string;
  readonly config: string;
  readonly sockets: string;
  readonly initialPassword: string;
}

/** What the server sees where: fixed names in a sandbox, the real ones without. */
export function placesOf(confinement: Confinement, dir: string, socketDir: string): Places {
  const real = instanceFiles(dir);
  if (confinement.bwrap === null) return { ...real, binDir: confinement.binDir, sockets: socketDir };
  return {
    binDir: isSystemFolder(confinement.binDir) ? confinement.binDir : "/berth/postgres/bin",
    data: "/berth/data",
    config: "/berth/config",
    sockets: "/berth/sockets",
    initialPassword: "/berth/initial-password",
  };
}

/** What of the instance's folder a program gets to see. */
export interface Bindings {
  readonly data: string;
  readonly config: string;
  readonly sockets: string;
  readonly initialPassword?: string;
}

/**
 * The command that runs `program` confined: it sees the system's programs, its own folders and nothing of other projects.
 * Its process namespace ends all backends with the postmaster, so that a killed one leaves nothing behind.
 * The IPC namespace stays the machine's: PostgreSQL's guard against two servers on one data folder is a segment in it.
 */
export function confined(confinement: Confinement, program: Command, bindings: Bindings): Command {
  if (confinement.bwrap === null) return program;
  const inside =
    confinement.uid === null
      ? [program.file, ...program.args]
      : [...becoming(confinement.uid), program.file, ...program.args];
  const args = [
    ...namespaces(confinement),
    ...systemFolders(confinement),
    ...ownFolders(bindings),
    "--remount-ro",
    "/",
    "--chdir",
    "/",
    "--",
    ...inside,
  ];
  return { file: confinement.bwrap, args };
}

/** What a client program gets to see beside the system's programs. */
export interface ClientBindings {
  readonly config: string;
  readonly sockets: string;
  /** The program itself, when it is no part of the system. */
  readonly program: string;
}

/**
 * The command that runs a client program confined: it sees the server's socket and nothing of the network or of other projects,
 * as the server's user, because what it reads was made by the project's owner. It ends with the control plane.
 */
export function confinedClient(confinement: Confinement, program: Command, bindings: ClientBindings): Command {
  if (confinement.bwrap === null) return program;
  const { config, sockets } = bindings;
  const own = isSystemFolder(bindings.program) ? [] : ["--ro-bind", bindings.program, bindings.program];
  const users = ["--ro-bind", `${config}/passwd`, "/etc/passwd", "--ro-bind", `${config}/group`, "/etc/group"];
  const run = confinement.uid === null ? [] : becoming(confinement.uid);
  const args = [
    ...namespaces(confinement),
    "--unshare-net",
    "--die-with-parent",
    ...systemFolders(confinement),
    ...users,
    "--bind",
    sockets,
    "/berth/sockets",
    ...own,
    "--remount-ro",
    "/",
    "--chdir",
    "/",
    "--",
    ...run,
    program.file,
    ...program.args,
  ];
  return { file: confinement.bwrap, args };
}

function namespaces(confinement: Confinement): string[] {
  const user = confinement.uid === null ? ["--unshare-user", "--disable-userns"] : [];
  return [...user, "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"];
}

function becoming(uid: number): string[] {
  const drop = ["--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"];
  return ["/usr/bin/setpriv", "--reuid", String(uid), "--regid", String(uid), ...drop, "--"];
}

// Parents that bubblewrap makes by itself as root are closed to others, so each is made first with its mode.
function systemFolders(confinement: Confinement): string[] {
  const folders = ["/etc", "/etc/ssl", "/berth", "/berth/postgres"].flatMap((path) => [
    "--perms",
    "0755",
    "--dir",
    path,
  ]);
  const system = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/ssl/openssl.cnf"];
  const shown = system.flatMap((path) => ["--ro-bind-try", path, path]);
  const own = isSystemFolder(confinement.binDir) ? [] : ["--ro-bind", dirname(confinement.binDir), "/berth/postgres"];
  return [...folders, ...shown, ...own, "--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm"];
}

function ownFolders(bindings: Bindings): string[] {
  const { data, config, sockets, initialPassword } = bindings;
  const password = initialPassword === undefined ? [] : ["--ro-bind", initialPassword, "/berth/initial-password"];
  const users = ["--ro-bind", `${config}/passwd`, "/etc/passwd", "--ro-bind", `${config}/group`, "/etc/group"];
  return [
    ...users,
    "--bind",
    data,
    "/berth/data",
    "--ro-bind",
    config,
    "/berth/config",
    "--bind",
    sockets,
    "/berth/sockets",
    ...password,
  ];
}

function isSystemFolder(path: string): boolean {
  return path.startsWith("/usr/");
}
