import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { specOf } from "../../src/features/database/database.ts";
import type { BackupPlatform, TestProject } from "./backups.ts";
import type { Step } from "./control-plane-steps.ts";
import { eventually } from "./eventually.ts";
import { startNode } from "./node-process.ts";

const script = fileURLToPath(new URL("./backup-control-plane.ts", import.meta.url));

/** Starts another control plane beside the platform, and kills it once it has reached a step, or a random moment of up to `withinMs` later. */
export async function killControlPlane(
  running: BackupPlatform,
  project: TestProject,
  { step, withinMs = 0 }: { readonly step: Step; readonly withinMs?: number },
): Promise<void> {
  const child = startNode([script]);
  child.stderr.pipe(process.stderr);
  const { password } = specOf(running.platform.vault, await project.row());
  const { backupsDir, hostOptions: host } = running;
  child.stdin.end(JSON.stringify({ connection: running.api.database.connection, host, password, backupsDir, step }));
  const closed = once(child, "close");
  let printed = "";
  child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  try {
    await eventually(() => {
      if (child.exitCode !== null) throw new Error("the control plane exited before the step");
      return printed.includes("reached");
    }, `the control plane is at ${step}`);
    await sleep(Math.random() * withinMs);
  } finally {
    child.kill("SIGKILL");
    await closed;
  }
}
