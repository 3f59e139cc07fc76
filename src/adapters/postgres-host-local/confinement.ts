import { dirname } from "node:path";
import type { Command } from "../../kit/exec.ts";
import {
  isSystemFolder,
  readOnly,
  sandboxOf,
  usersIn,
  writable,
  type Confinement,
} from "../../postgres/confinement.ts";
import { lightCommand } from "../../sandbox/light-sandbox.ts";
import { instanceFiles } from "./instance-files.ts";

/** The paths of an instance's folders as its server sees them. */
export interface Places {
  readonly binDir: string;
  readonly data: string;
  readonly config: string;
  readonly sockets: string;
  readonly initialPassword: string;
}

/** Returns the paths that the server sees: fixed ones in a sandbox, the real ones without. */
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

/** The parts of the instance's folder that a program can see. */
export interface Bindings {
  readonly data: string;
  readonly config: string;
  readonly sockets: string;
  readonly initialPassword?: string;
}

/**
 * Returns the command that runs `program` confined: it sees the system's programs and its own folders, and nothing of other projects. Its
 * PID namespace kills all backends with the postmaster. The IPC namespace stays the machine's: PostgreSQL's guard against two servers on
 * one data folder is a shared memory segment in it.
 */
export function confined(confinement: Confinement, program: Command, bindings: Bindings): Command {
  if (confinement.bwrap === null) return program;
  const { data, config, sockets, initialPassword } = bindings;
  const binds = [
    ...(isSystemFolder(confinement.binDir) ? [] : [readOnly(dirname(confinement.binDir), "/berth/postgres")]),
    ...usersIn(config),
    writable(data, "/berth/data"),
    readOnly(config, "/berth/config"),
    writable(sockets, "/berth/sockets"),
    ...(initialPassword === undefined ? [] : [readOnly(initialPassword, "/berth/initial-password")]),
  ];
  const server = { network: "host", ipc: "host", isDetached: true } as const;
  return lightCommand({ ...sandboxOf(confinement), ...server, binds }, program);
}
