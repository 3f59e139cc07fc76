import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { run } from "./exec.ts";
import { openProjectQuota, quotaCommands, quotaMount } from "./project-quota.ts";

const mounts = `21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 21 7:0 / /data rw,relatime shared:1 - xfs /dev/sdb rw,attr2,inode64,prjquota
31 30 7:1 / /data/plain rw,relatime - xfs /dev/sdc rw,attr2,inode64,noquota
32 21 7:2 / /with\\040blank rw - xfs /dev/sdd rw,prjquota`;

test("quotas are used where the path's own file system is XFS and enforces them", () => {
  assert.equal(quotaMount(mounts, "/data"), "/data");
  assert.equal(quotaMount(mounts, "/data/berth/storage"), "/data");
  for (const path of ["/database", "/data/plain/x", "/with\\040blank/x", "/root"])
    assert.equal(quotaMount(mounts, path), null, path);
});

test("a folder is given to its project and limited, without the machine's own list of projects", () => {
  const limited = { mountPoint: "/data", folder: "/data/berth/storage/prj_1", id: 4711, kib: 20_480 };
  const shared = ["-x", "-D", "/dev/null", "-P", "/dev/null", "-c"];
  assert.deepEqual(quotaCommands("xfs_quota", limited), [
    { file: "xfs_quota", args: [...shared, "project -s -p /data/berth/storage/prj_1 4711", "/data"] },
    { file: "xfs_quota", args: [...shared, "limit -p bhard=20480k 4711", "/data"] },
  ]);
});

test("a real XFS with project quotas refuses what is beyond a folder's limit and knows what it takes", async (t) => {
  const place = mkdtempSync(join(tmpdir(), "berth-quota-"));
  const [image, folder] = [join(place, "image"), join(place, "mounted")];
  mkdirSync(folder);
  const steps = [
    ["truncate", "--size", "400M", image],
    ["mkfs.xfs", "-q", image],
    ["mount", "-o", "loop,prjquota", image, folder],
  ] as const;
  try {
    for (const [file, ...args] of steps) {
      const failed = await run({ file, args }).then(({ exitCode, stderr }) => exitCode !== 0 && stderr, String);
      if (failed !== false) return t.skip(`this machine mounts no XFS with project quotas: ${failed.trim()}`);
    }
    const quota = openProjectQuota("xfs_quota", folder, readFileSync("/proc/self/mountinfo", "utf8"));
    assert.ok(quota);
    const [storage, other] = [join(folder, "storage"), join(folder, "other")];
    for (const each of [storage, other]) mkdirSync(each);
    const mib = 1024 * 1024;
    assert.ok(((await quota.limit(storage, 5, 20 * mib)) ?? mib) < mib);
    appendFileSync(join(storage, "big"), Buffer.alloc(12 * mib));
    assert.equal(Math.round(((await quota.limit(storage, 5, 20 * mib)) ?? 0) / mib), 12);
    assert.throws(() => appendFileSync(join(storage, "more"), Buffer.alloc(12 * mib)), /ENOSPC|EDQUOT/);
    appendFileSync(join(other, "free"), Buffer.alloc(30 * mib));
    await quota.limit(storage, 5, 60 * mib);
    appendFileSync(join(storage, "more"), Buffer.alloc(12 * mib));
  } finally {
    await run({ file: "umount", args: ["--lazy", folder] });
    rmSync(place, { recursive: true, force: true });
  }
});
