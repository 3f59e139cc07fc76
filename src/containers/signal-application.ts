import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DockerApi } from "../kit/docker-api.ts";
import { readProcessFile } from "../kit/processes.ts";
import { behindWrappers, readProcessTree, wrappers } from "../kit/process-tree.ts";
import { readFrames } from "./read-frames.ts";

const script = readFileSync(join(import.meta.dirname, "signal-application.sh"), "utf8");

/**
 * Sends a signal to the container's application: its main process, or what it waits for if it is a shell or a package manager. The engine
 * would signal the init process, which forwards it to a shell in front of the application; that shell would exit at once and end the
 * application.
 */
export async function signalApplication(
  api: DockerApi,
  { id, pid: init }: { readonly id: string; readonly pid: number },
  signal: number,
): Promise<void> {
  if (!isInit(init)) return signalInside(api, id, signal);
  const tree = readProcessTree();
  const targets = tree.childrenOf(init).flatMap((main) => behindWrappers(tree, main));
  for (const pid of targets.length > 0 ? targets.map((target) => target.pid) : [init]) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has already exited.
    }
  }
}

/** Returns whether the container's first process here is Docker's init. Under gVisor it is the sandbox, whose children lose signals. */
const isInit = (pid: number): boolean => readProcessFile(pid, "cmdline").startsWith("/sbin/docker-init\0");

/** Runs a script in the container, which finds the processes there. An image without a shell has none in front of its application. */
async function signalInside(api: DockerApi, id: string, signal: number): Promise<void> {
  const lists = [wrappers.shells.join(" "), wrappers.packageManagers.join(" ")];
  const code = await runInside(api, id, ["/bin/sh", "-c", script, "sh", String(signal), ...lists]).catch(() => null);
  if (code !== 0) await api.call({ method: "POST", path: `/containers/${id}/kill`, query: { signal: String(signal) } });
}

async function runInside(api: DockerApi, id: string, words: readonly string[]): Promise<number | null> {
  const body = { AttachStdout: true, AttachStderr: true, Cmd: words };
  const { Id: run } = await api.call<{ Id: string }>({ method: "POST", path: `/containers/${id}/exec`, body });
  const start = { method: "POST", path: `/exec/${run}/start`, body: { Detach: false, Tty: false } } as const;
  await readFrames(await api.stream(start), () => {});
  return (await api.call<{ ExitCode: number | null }>({ path: `/exec/${run}/json` })).ExitCode;
}
