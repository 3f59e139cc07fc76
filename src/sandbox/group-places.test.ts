import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { testFolder } from "../../test/support/test-folder.ts";
import { ownGroup, ownLegacyGroup, tenantGroup } from "../kit/tenant-group.ts";
import { groupPlaces } from "./cgroups.ts";

const root = testFolder("groups");
const folders = (own: string, isRoot: boolean) =>
  groupPlaces(root, { root, folder: join(root, own) }, isRoot).map(({ folder }) => folder.slice(root.length));

before(async () => {
  for (const folder of ["berth.slice/berth.service", "berth.slice/berth-tenants.service", "user.slice/run-1.scope"]) {
    await mkdir(join(root, folder), { recursive: true });
    await writeFile(join(root, folder, "cgroup.procs"), "");
  }
});

test("a service's groups are in the unit beside it, else root's at the top of the hierarchy", () => {
  assert.deepEqual(folders("berth.slice/berth.service", true), ["/berth.slice/berth-tenants.service", ""]);
  assert.deepEqual(folders("user.slice/run-1.scope", true), [""]);
});

test("an ordinary user's groups are below the group that was delegated, also for a process that moved to its leaf", () => {
  assert.deepEqual(folders("user.slice/run-1.scope", false), ["/user.slice/run-1.scope"]);
  assert.deepEqual(folders("user.slice/run-1.scope/control-plane", false), ["/user.slice/run-1.scope"]);
  assert.deepEqual(folders("user.slice", false), [], "a group without files to write is not ours");
});

test("a group with processes of others is not divided", async () => {
  const place = groupPlaces(root, { root, folder: join(root, "user.slice/run-1.scope") }, false)[0];
  await writeFile(join(root, "user.slice/run-1.scope/cgroup.procs"), "1\n");
  assert.throws(() => place?.vacate?.(), /other processes/);
});

test("this process's group is read from the kernel's files, and only the service has tenants", () => {
  const mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
  const expected = { root: "/sys/fs/cgroup", folder: "/sys/fs/cgroup/berth.slice/berth.service" };
  assert.deepEqual(ownGroup(mounts, "1:name=systemd:/x\n0::/berth.slice/berth.service\n"), expected);
  assert.equal(ownGroup("tmpfs /tmp tmpfs rw 0 0\n", "0::/\n"), undefined);
  const legacy =
    "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0\n";
  const found = ownLegacyGroup(legacy, "4:memory:/\n1:name=systemd:/berth.slice/berth.service\n0::/\n");
  assert.deepEqual(found, {
    root: "/sys/fs/cgroup/systemd",
    folder: "/sys/fs/cgroup/systemd/berth.slice/berth.service",
  });
  assert.equal(ownLegacyGroup(mounts, "0::/\n"), undefined);
  assert.equal(tenantGroup(join(root, "berth.slice/berth.service")), join(root, "berth.slice/berth-tenants.service"));
  assert.equal(tenantGroup(join(root, "user.slice/run-1.scope")), undefined);
});
