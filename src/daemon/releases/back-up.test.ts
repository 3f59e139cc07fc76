import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { testApi } from "../../../test/support/test-platform.ts";
import { endPlatformBackup, platformBackups, requestPlatformBackup } from "../../features/platform/platform.ts";
import { backUpPlatform } from "./back-up.ts";

const api = await testApi();
after(() => api.close());
const { db, wakeups } = api.platform;
beforeEach(() => db.deleteFrom("platform_backup").execute());

const timeoutMs = 600_000;
const made = {
  status: "completed" as const,
  ...{ problem: null, size_bytes: 1, taken_at: "2026-01-02T03:04:05Z" },
  ...{ version: "0.1.0", recipient: "age1test", sha256: "0" },
};

async function requested(): Promise<string> {
  const running = async () => (await platformBackups(db)).find(({ status }) => status === "running")?.id;
  await eventually(async () => (await running()) !== undefined, "a backup is requested");
  return (await running()) as string;
}

test("an upgrade waits until its own backup is stored, whatever was stored before", async () => {
  const earlier = (await requestPlatformBackup(db, wakeups, "daily")) as string;
  await endPlatformBackup(db, earlier, made);
  const backup = backUpPlatform(db, { timeoutMs });
  const id = await requested();
  assert.notEqual(id, earlier);
  await endPlatformBackup(db, id, made);
  assert.equal(await backup, id);
});

test("one that fails ends the upgrade with its reason, and the way to go on", async () => {
  const backup = backUpPlatform(db, { timeoutMs });
  const ended = assert.rejects(backup, /failed: The storage of backups is full\. .*--without-backup/);
  await endPlatformBackup(db, await requested(), { status: "failed", problem: "The storage of backups is full." });
  await ended;
});

test("one that is under way counts, and is not waited for endlessly", async () => {
  await requestPlatformBackup(db, wakeups, "daily");
  await assert.rejects(backUpPlatform(db, { timeoutMs: -1 }), /does not end\. .*--without-backup/);
  assert.equal((await platformBackups(db)).length, 1);
});
