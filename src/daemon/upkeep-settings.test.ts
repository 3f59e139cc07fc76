import assert from "node:assert/strict";
import { test } from "node:test";
import { readConfig } from "./config.ts";

test("daily backups are spread over the hours of a window, which may cross midnight, or are never made", () => {
  const window = (BERTH_BACKUP_WINDOW?: string) => readConfig({ BERTH_BACKUP_WINDOW }).backupWindow;
  assert.deepEqual(
    [window(), window("22-4"), window("never")],
    [{ startHour: 0, hours: 24 }, { startHour: 22, hours: 6 }, null],
  );
  for (const wrong of ["4-4", "25-26", "often"]) assert.throws(() => window(wrong), /BERTH_BACKUP_WINDOW must be two/);
});
