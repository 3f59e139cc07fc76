import { accessSync, constants, statfsSync } from "node:fs";
import { tmpdir } from "node:os";

const memory = "/dev/shm";
const roomBytes = 2 * 1024 ** 3;
/** The number of the file system tmpfs in statfs(2). */
const tmpfs = 0x0102_1994;

/**
 * Where the data of tests' PostgreSQL servers lies: in memory where the machine has much of it. A database is a thousand files that come and
 * go, which on a disk takes twice the processor time, and waits besides.
 */
export function serversFolder(): string {
  return hasRoom(memory) ? memory : tmpdir();
}

function hasRoom(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    // Of its whole size, so that all processes of a run decide alike.
    const { type, bsize, blocks } = statfsSync(folder);
    return type === tmpfs && bsize * blocks >= roomBytes;
  } catch {
    return false;
  }
}
