import { setTimeout as sleep } from "node:timers/promises";
import { platformBackups, requestPlatformBackup } from "../../features/platform/platform.ts";
import type { Db } from "../../store/database.ts";
import { sendWakeup } from "../../store/wakeups.ts";

const lookEveryMs = 500;

/**
 * Has the control plane that runs back the platform up, and returns the backup's id once it is stored and read back; one that is under way
 * counts. Throws with the reason if it fails, or has not ended after `timeoutMs`.
 */
export async function backUpPlatform(db: Db, { timeoutMs }: { readonly timeoutMs: number }): Promise<string> {
  const end = Date.now() + timeoutMs;
  const underWay = async () => (await platformBackups(db)).find(({ status }) => status === "running")?.id;
  let id: string | undefined;
  // The one under way may end before it is looked at.
  while (id === undefined) id = (await requestPlatformBackup(db, { send: sendWakeup }, "manual")) ?? (await underWay());
  for (;;) {
    const made = (await platformBackups(db)).find((backup) => backup.id === id);
    if (made?.status === "completed") return id;
    if (made?.status !== "running") throw refusal(`failed: ${made?.problem ?? "it is gone."}`);
    if (Date.now() > end) throw refusal("does not end.");
    await sleep(lookEveryMs);
  }
}

const refusal = (what: string) =>
  new Error(
    `The backup of the platform ${what} Mend that and try again, or go on without one: berth platform upgrade --without-backup`,
  );
