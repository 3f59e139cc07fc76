import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { statfs, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runOk } from "../../kit/exec.ts";
import type { DataDisk, DiskSpace } from "../../ports/data-disk.ts";

export interface LocalDataDiskOptions {
  readonly dataDir: string;
  /** Below this much free space, tenants may not write. The reserve file takes half of it, and is deleted below a quarter of it. */
  readonly floorBytes: number;
}

const reserveTimeoutMs = 60_000;

/** The port for the disk of a data folder on this machine. The reserve is a file with allocated blocks: deleting it frees space at once. */
export function createLocalDataDisk({ dataDir, floorBytes }: LocalDataDiskOptions): DataDisk {
  const reserve = join(dataDir, "reserve");
  const reserveBytes = floorBytes / 2;
  /** The databases may be in a file system of their own. */
  const observe = async () => {
    const [own, databases] = [await observeSpace(dataDir, floorBytes), join(dataDir, "databases")];
    const theirs = existsSync(databases) ? await observeSpace(databases, floorBytes) : own;
    return theirs.available_bytes < own.available_bytes || theirs.is_low ? theirs : own;
  };
  return {
    observe,
    async keepReserve() {
      const { available_bytes } = await observeSpace(dataDir, floorBytes);
      const isMade = sizeOf(reserve) >= reserveBytes;
      if (available_bytes < floorBytes / 4) {
        rmSync(reserve, { force: true });
        return isMade ? "freed" : "missing";
      }
      if (isMade) return "kept";
      // Create the reserve only if more than the floor stays free afterwards; otherwise the reserve itself would stop tenants from writing.
      if (available_bytes < floorBytes * 2) return "missing";
      await allocate(reserve, reserveBytes);
      // fallocate(1) ends with 0 also if posix_fallocate(3) has failed.
      return sizeOf(reserve) >= reserveBytes ? "made" : "missing";
    },
    async probeWrite() {
      const probe = join(dataDir, `.write-probe-${process.pid}`);
      try {
        await writeFile(probe, "x");
      } finally {
        await unlink(probe).catch(() => {});
      }
    },
  };
}

async function observeSpace(dataDir: string, floorBytes: number): Promise<DiskSpace> {
  const { bsize, blocks, bavail, files, ffree } = await statfs(dataDir);
  const available_bytes = bavail * bsize;
  // A disk can run out of inodes as well as bytes. File systems that allocate inodes on demand report none.
  const inodesLeft = files === 0 ? 1 : ffree / files;
  return {
    total_bytes: blocks * bsize,
    available_bytes,
    is_low: available_bytes < floorBytes * 1.25 || inodesLeft < 0.03,
    is_short: available_bytes < floorBytes || inodesLeft < 0.02,
    is_full: available_bytes < floorBytes / 8 || inodesLeft < 0.002,
  };
}

async function allocate(file: string, bytes: number): Promise<void> {
  mkdirSync(join(file, ".."), { recursive: true });
  // `--posix` writes where a file system cannot allocate without writing.
  const args = ["--posix", "--length", String(bytes), file];
  await runOk({ file: "fallocate", args }, { timeoutMs: reserveTimeoutMs });
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
