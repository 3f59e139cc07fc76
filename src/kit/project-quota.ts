import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { runOk, type Command } from "./exec.ts";

/** Per-folder limits enforced by an XFS file system that is mounted with `prjquota`. */
export interface ProjectQuota {
  /** Limits a folder's size: a write beyond fails with EDQUOT or ENOSPC. Resolves with the bytes in use, null if it could not be set. */
  limit(folder: string, id: number, bytes: number): Promise<number | null>;
}

const blockBytes = 4096;
const timeoutMs = 60_000;

/** Returns the quotas of the file system that holds `folder`; null when it has none, or when its paths can't be passed to `xfs_quota`. */
export function openProjectQuota(xfsQuotaBin: string | null, folder: string, mountInfo: string): ProjectQuota | null {
  const mountPoint = quotaMount(mountInfo, realpathSync(folder));
  if (xfsQuotaBin === null || mountPoint === null || !isPlain(folder)) return null;
  return {
    async limit(limited, id, bytes) {
      const blocks = Math.floor(bytes / blockBytes);
      const known = await statfs(limited);
      if (known.blocks !== blocks)
        for (const command of quotaCommands(xfsQuotaBin, { mountPoint, folder: limited, id, kib: blocks * 4 }))
          await runOk(command, { timeoutMs });
      // The file system reports a limited folder as a volume of the limit's size, so this also verifies that the limit is in force.
      const seen = await statfs(limited);
      return seen.blocks === blocks && seen.bsize === blockBytes ? (seen.blocks - seen.bfree) * blockBytes : null;
    },
  };
}

export interface LimitedFolder {
  readonly mountPoint: string;
  readonly folder: string;
  readonly id: number;
  readonly kib: number;
}

/** Returns the xfs_quota(8) commands that assign the folder to the project `id` and set its limit, without the machine's own files. */
export function quotaCommands(xfsQuotaBin: string, { mountPoint, folder, id, kib }: LimitedFolder): readonly Command[] {
  const quota = (words: string): Command => ({
    file: xfsQuotaBin,
    args: ["-x", "-D", "/dev/null", "-P", "/dev/null", "-c", words, mountPoint],
  });
  return [quota(`project -s -p ${folder} ${id}`), quota(`limit -p bhard=${kib}k ${id}`)];
}

/** Returns the mount point that holds a path, from proc_pid_mountinfo(5), if it is XFS with enforced project quotas; otherwise null. */
export function quotaMount(mountInfo: string, path: string): string | null {
  const mounts = mountInfo.split("\n").flatMap((line) => {
    const [left = "", right = ""] = line.split(" - ");
    const mountPoint = left.split(" ")[4];
    const [type, , options = ""] = right.split(" ");
    return mountPoint === undefined ? [] : [{ mountPoint, type, options: options.split(",") }];
  });
  const holds = ({ mountPoint }: { mountPoint: string }) =>
    mountPoint === "/" || path === mountPoint || path.startsWith(`${mountPoint}/`);
  // When two mounts share a mount point, the later one hides the earlier.
  const longest = mounts
    .filter(holds)
    .reduce<(typeof mounts)[number] | undefined>(
      (best, each) => (best === undefined || each.mountPoint.length >= best.mountPoint.length ? each : best),
      undefined,
    );
  const isLimited = longest?.type === "xfs" && longest.options.some((each) => each === "prjquota" || each === "pquota");
  return isLimited && isPlain(longest.mountPoint) ? longest.mountPoint : null;
}

/** xfs_quota splits its arguments at blanks and has no quoting. */
const isPlain = (path: string): boolean => /^[\w./@+-]+$/.test(path);

/** Returns the quota id of a storage folder; ids of another data folder on the same file system differ in the upper bits. */
export function quotaId(stateDir: string, projectNumber: number): number {
  const tag = createHash("sha256").update(stateDir).digest().readUInt16BE(0) & 0xfff;
  return tag * 2 ** 19 + 1 + projectNumber;
}
