import { dirname } from "node:path";
import { run, type Command } from "../../kit/exec.ts";
import { lightCommand } from "../../sandbox/light-sandbox.ts";
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
  const probe = lightCommand({ ...programsOf(confinement), binds: [] }, { file: "/usr/bin/env", args: ["true"] });
  const result = await run(probe, { timeoutMs: 10_000 }).catch(() => undefined);
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
  const { data, config, sockets, initialPassword } = bindings;
  const binds = [
    ...(isSystemFolder(confinement.binDir) ? [] : [readOnly(dirname(confinement.binDir), "/berth/postgres")]),
    ...users(config),
    writable(data, "/berth/data"),
    readOnly(config, "/berth/config"),
    writable(sockets, "/berth/sockets"),
    ...(initialPassword === undefined ? [] : [readOnly(initialPassword, "/berth/initial-password")]),
  ];
  const server = { network: "host", ipc: "host", isDetached: true } as const;
  return lightCommand({ ...programsOf(confinement), ...server, binds }, program);
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
export function confinedClient(confinement: Confinement, command: Command, bindings: ClientBindings): Command {
  if (confinement.bwrap === null) return command;
  const { config, sockets, program } = bindings;
  const binds = [
    ...users(config),
    writable(sockets, "/berth/sockets"),
    ...(isSystemFolder(program) ? [] : [readOnly(program, program)]),
  ];
  return lightCommand({ ...programsOf(confinement), binds }, command);
}

const programsOf = ({ bwrap, uid }: Confinement) => ({
  bwrap: bwrap as string,
  user: uid === null ? null : { uid, setpriv: "/usr/bin/setpriv" },
});

const readOnly = (source: string, target: string) => ({ source, target, writable: false });
const writable = (source: string, target: string) => ({ source, target, writable: true });
const users = (config: string) => [
  readOnly(`${config}/passwd`, "/etc/passwd"),
  readOnly(`${config}/group`, "/etc/group"),
];

function isSystemFolder(path: string): boolean {
  return path.startsWith("/usr/");
}
