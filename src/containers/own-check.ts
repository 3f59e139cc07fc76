import type { DockerApi } from "../kit/docker-api.ts";
import { readProcessTree } from "../kit/process-tree.ts";
import type { OwnCheck } from "../ports/runtime.ts";
import { labels } from "./settings.ts";
import type { ContainerDetails } from "./containers.ts";
import { readFrames } from "./read-frames.ts";

export interface ImageHealthcheck {
  /** `CMD` and arguments, `CMD-SHELL` and a command line, or `NONE`. */
  readonly Test?: readonly string[];
  /** Nanoseconds; 0 means the engine's default. */
  readonly Timeout?: number;
}

export interface ImageCheck {
  readonly words: readonly string[];
  readonly timeoutMs: number;
}

// Docker's default.
const longestMs = 30_000;
const endEveryMs = 250;
const keptBytes = 400;
const keptChunks = 20;
// Reading more costs the control plane a processor for as long as the check may run.
const mostBytes = 1024 * 1024;

/** Runs the image's health check inside the container, with the container's user and limits, and kills it after its timeout. */
export async function runOwnCheck(api: DockerApi, container: ContainerDetails): Promise<OwnCheck> {
  const written = container.Config.Labels[labels.check];
  if (written === undefined || written === "") return { outcome: "none" };
  if (!container.State.Running) return { outcome: "failed", detail: "was not run: the application has ended" };
  const { words, timeoutMs } = JSON.parse(written) as ImageCheck;
  const { Id: id } = await api.call<{ Id: string }>({
    ...{ method: "POST", path: `/containers/${container.Id}/exec` },
    body: { AttachStdout: true, AttachStderr: true, Cmd: words },
  });
  const output: Buffer[] = [];
  let isLate = false;
  let bytes = 0;
  // Repeats the kill: on a busy machine the command may only start after the timeout.
  const end = () => {
    isLate = true;
    timer = setTimeout(end, endEveryMs);
    void endCheck(api, id);
  };
  let timer = setTimeout(end, timeoutMs);
  try {
    const answer = await api.stream({ method: "POST", path: `/exec/${id}/start`, body: { Detach: false, Tty: false } });
    await readFrames(answer, (chunk) => {
      bytes += chunk.length;
      if (bytes > mostBytes) throw new PrintedTooMuch();
      if (output.length < keptChunks) output.push(chunk.subarray(0, keptBytes));
    });
  } catch (error) {
    if (!(error instanceof PrintedTooMuch)) throw error;
    await endCheck(api, id);
    return { outcome: "failed", detail: `printed more than ${mostBytes / 1024 / 1024} MiB` };
  } finally {
    clearTimeout(timer);
  }
  const { ExitCode: code } = await api.call<ExecDetails>({ path: `/exec/${id}/json` });
  if (code === 0 && !isLate) return { outcome: "healthy" };
  const how = isLate ? `did not end within ${timeoutMs / 1000} s` : `ended with exit code ${code}`;
  const said = Buffer.concat(output).toString("utf8").trim().replaceAll(/\s+/g, " ").slice(0, keptBytes);
  return { outcome: "failed", detail: said === "" ? how : `${how}: ${said}` };
}

class PrintedTooMuch extends Error {
  override readonly name = "PrintedTooMuch";
}

/** Returns the command and timeout of a HEALTHCHECK; null if it runs nothing. */
export function checkOf(check: ImageHealthcheck | undefined, shell: readonly string[] = []): ImageCheck | null {
  const [kind, ...words] = check?.Test ?? [];
  if (words.length === 0 || (kind !== "CMD" && kind !== "CMD-SHELL")) return null;
  const wholeMs = Math.ceil((check?.Timeout ?? 0) / 1e6);
  return {
    words: kind === "CMD" ? words : [...(shell.length > 0 ? shell : ["/bin/sh", "-c"]), ...words],
    timeoutMs: wholeMs > 0 ? Math.min(wholeMs, longestMs) : longestMs,
  };
}

interface ExecDetails {
  readonly ExitCode: number | null;
  readonly Pid: number;
}

/** Kills the check's processes: the engine's API cannot stop a command started by `exec`. */
async function endCheck(api: DockerApi, id: string): Promise<void> {
  const { Pid: pid } = await api.call<ExecDetails>({ path: `/exec/${id}/json` }).catch(() => ({ Pid: 0 }));
  if (pid <= 0) return;
  const begun = readProcessTree().descendantsOf(pid);
  // Kills the command before its children, or it would continue when a child exits.
  for (const each of [pid, ...begun.map((child) => child.pid)]) {
    try {
      process.kill(each, "SIGKILL");
    } catch {
      // It has already exited.
    }
  }
}
