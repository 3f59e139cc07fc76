import { realpathSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { runOk, type Command } from "./exec.ts";

/** Limits of folders that an XFS file system keeps itself, mounted with `prjquota`. */
export interface ProjectQuota {
  /**
   * Limits a folder's bytes: a write beyond the limit fails with EDQUOT or ENOSPC. Resolves with the bytes in use, or with null when the
   * limit could not be set. `id` is the folder's quota project on the file system.
   */
  limit(folder: string, id: number, bytes: number): Promise<number | null>;
}

const blockBytes = 4096;
const timeoutMs = 60_000;

/** The quotas of the file system that holds `folder`; null where it has none, or where its names could not be given to `xfs_quota`. */
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
      // Of a limited folder the file system says that it is as large as its limit: so this also shows whether the limit holds.
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

/** xfs_quota(8): gives the folder with all in it to the project `id`, and limits that. No file of the machine's own projects is read. */
export function quotaCommands(xfsQuotaBin: string, { mountPoint, folder, id, kib }: LimitedFolder): readonly Command[] {
  const quota = (words: string): Command => ({
    file: xfsQuotaBin,
    args: ["-x", "-D", "/dev/null", "-P", "/dev/null", "-c", words, mountPoint],
  });
  return [quota(`project -s -p ${folder} ${id}`), quota(`limit -p bhard=${kib}k ${id}`)];
}

/** Where the file system of a path is mounted, by proc_pid_mountinfo(5), if it is XFS with project quotas that are enforced. */
export function quotaMount(mountInfo: string, path: string): string | null {
  const mounts = mountInfo.split("\n").flatMap((line) => {
    const [left = "", right = ""] = line.split(" - ");
    const mountPoint = left.split(" ")[4];
    const [type, , options = ""] = right.split(" ");
    return mountPoint === undefined ? [] : [{ mountPoint, type, options: options.split(",") }];
  });
  const holds = ({ mountPoint }: { mountPoint: string }) =>
    mountPoint === "/" || path === mountPoint || path.startsWith(`${mountPoint}/`);
  // Of two mounts at one place the later one hides the other.
  const longest = mounts
    .filter(holds)
    .reduce<(typeof mounts)[number] | undefined>(
      (best, each) => (best === undefined || each.mountPoint.length >= best.mountPoint.length ? each : best),
      undefined,
    );
  const isLimited = longest?.type === "xfs" && longest.options.some((each) => each === "prjquota" || each === "pquota");
  return isLimited && isPlain(longest.mountPoint) ? longest.mountPoint : null;
}

/** xfs_quota takes its words apart at blanks and knows no quoting. */
const isPlain = (path: string): boolean => /^[\w./@+-]+$/.test(path);
