import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { startDetached } from "../../kit/exec.ts";
import { forwardedSockets } from "../../kit/server-address.ts";
import { until } from "../../kit/until.ts";
import type { SandboxCommand } from "../../sandbox/spec.ts";
import type { ReplicaStart, Workload } from "../../ports/runtime.ts";
import { currentBoot, type InstanceFolder, type InstanceRecord } from "./instance-folder.ts";
import type { InstanceFolders } from "./instance-folders.ts";
import { sandboxSpec, shellWords, uidOf, type ProcessRuntimeOptions } from "./settings.ts";

const shim = join(import.meta.dirname, "shim.sh");

/** Starts one attempt of an ordinal and resolves once its shim has written its pid. A failed start leaves nothing behind. */
export async function startInstance(
  options: ProcessRuntimeOptions,
  folders: InstanceFolders,
  workload: Workload,
  place: ReplicaStart,
): Promise<InstanceFolder> {
  const { command: line, ...spec } = sandboxSpec(options, workload, `run-${randomBytes(8).toString("hex")}`);
  if (line === null) throw new Error(`the image ${workload.image_ref} has no process ${workload.process}`);
  const owner = options.sandbox.hostUid(uidOf(options, workload));
  const claimed = folders.claim(recordOf(workload, place, spec.id), owner);
  try {
    const { port } = workload;
    const reach = forwardedSockets(workload.reach);
    const network = port === null ? ({ kind: "egress", reach } as const) : ({ kind: "serve", port, reach } as const);
    const command = await options.sandbox.command({ ...spec, network, argv: shellWords(line) });
    const folder = claimed.withAddress(command.address);
    await launch(folder, command);
    return folder;
  } catch (fault) {
    claimed.giveUp();
    claimed.settle({ code: null, out_of_memory: false, at: new Date() });
    await options.sandbox.remove(spec.id);
    folders.forgetAttempt(claimed);
    throw fault;
  }
}

function recordOf(workload: Workload, place: ReplicaStart, sandboxId: string): InstanceRecord {
  return {
    ...{ workload_id: workload.id, project_id: workload.project_id, image_ref: workload.image_ref, ...place },
    ...{ sandbox_id: sandboxId, boot_id: currentBoot(), started_at: new Date().toISOString() },
    ...{ limits: workload.limits, address: null },
  };
}

async function launch(folder: InstanceFolder, { command, options, close }: SandboxCommand): Promise<void> {
  const words = [shim, folder.path, command.file, ...command.args];
  try {
    await startDetached({ file: "/bin/sh", args: words }, join(folder.path, "output"), options);
  } finally {
    close();
  }
  const started = await until(() => folder.shim(), { timeoutMs: 60_000, firstMs: 2 });
  if (!started && folder.giveUp()) throw new Error("the shim of an application did not start");
}
