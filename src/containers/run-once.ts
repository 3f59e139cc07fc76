import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { unlessStatus, type DockerApi } from "../kit/docker-api.ts";
import type { OneOffCommand, OneOffResult, Terminal, TerminalSize, Workload } from "../ports/runtime.ts";
import { readExit } from "./containers.ts";
import { readFrames } from "./read-frames.ts";
import { removeContainers, startContainers, type DockerParts } from "./start-instance.ts";

/** Runs one command of the workload's image to its end, in a container that lives no longer than this process. */
export async function runOnce(parts: DockerParts, workload: Workload, task: OneOffCommand): Promise<OneOffResult> {
  const key = { workload_id: randomBytes(8).toString("hex"), ordinal: 0, attempt: 1 };
  const { terminal } = task;
  let screen: Duplex | undefined;
  const beforeStart = async (id: string) => {
    if (terminal !== undefined) screen = await attach(parts.api, id, terminal);
  };
  const run = { workload, key, role: "once", command: () => task.command, terminal, beforeStart } as const;
  const { app, name } = await startContainers(parts, run);
  try {
    return await follow(parts, app, task, screen);
  } finally {
    screen?.destroy();
    await removeContainers(parts, name);
  }
}

async function follow(
  { api }: DockerParts,
  id: string,
  task: OneOffCommand,
  screen: Duplex | undefined,
): Promise<OneOffResult> {
  const silence = new AbortController();
  const time = AbortSignal.timeout(task.timeoutMs);
  let quiet: NodeJS.Timeout | undefined;
  const heard = () => {
    clearTimeout(quiet);
    quiet = setTimeout(() => silence.abort(), task.silenceMs);
  };
  const kill = () =>
    void unlessStatus(api.call({ method: "POST", path: `/containers/${id}/kill` }), 404, 409).catch(() => {});
  const limits = AbortSignal.any([task.signal, silence.signal, time]);
  limits.addEventListener("abort", kill, { once: true });
  if (limits.aborted) kill();
  heard();
  try {
    const onChunk = (chunk: Buffer) => {
      heard();
      return task.onOutput(chunk);
    };
    if (screen === undefined) await passOutput(api, id, onChunk);
    else await passScreen(api, id, { screen, onChunk, limits });
    if (task.signal.aborted) return { outcome: "cancelled" };
    if (time.aborted) return { outcome: "timed_out" };
    if (silence.signal.aborted) return { outcome: "silent" };
    const exit = await readExit(api, id);
    return { outcome: "exited", code: exit?.code ?? 137, out_of_memory: exit?.out_of_memory ?? false };
  } finally {
    clearTimeout(quiet);
    limits.removeEventListener("abort", kill);
  }
}

/** Connects a person with the container's terminal before it starts, so that no output is missed. */
async function attach(api: DockerApi, id: string, { size, input, onResize }: Terminal): Promise<Duplex> {
  const query = { stream: true, stdin: true, stdout: true, stderr: true };
  const screen = await api.upgrade({ method: "POST", path: `/containers/${id}/attach`, query });
  screen.on("error", () => {});
  // The engine would end the connection's input, which the terminal does not notice.
  input.on("end", () => screen.write(ctrlD)).pipe(screen, { end: false });
  const resize = ({ columns, rows }: TerminalSize) =>
    void api.call({ method: "POST", path: `/containers/${id}/resize`, query: { w: columns, h: rows } }).catch(() => {});
  onResize(resize);
  // Engines before version 23 ignore the size that a container is made with.
  screen.once("data", () => resize(size));
  return screen;
}

const ctrlD = "\x04";

interface Screen {
  readonly screen: Duplex;
  readonly onChunk: (chunk: Buffer) => void | Promise<void>;
  readonly limits: AbortSignal;
}

/** Passes on what the terminal shows until the container has ended; a reader who is slow to the end must not keep it. */
async function passScreen(api: DockerApi, id: string, { screen, onChunk, limits }: Screen): Promise<void> {
  const isOver = new Promise<void>((resolve) => limits.addEventListener("abort", () => resolve(), { once: true }));
  const pass = async () => {
    for await (const chunk of screen as AsyncIterable<Buffer>) await onChunk(chunk);
  };
  await Promise.race([pass(), isOver]);
  await api.call({ method: "POST", path: `/containers/${id}/wait`, timeoutMs: 0 });
}

/** Passes on what a container writes until it has ended, each byte once. */
async function passOutput(api: DockerParts["api"], id: string, onChunk: (chunk: Buffer) => void): Promise<void> {
  const logs = (follow: boolean) =>
    api.stream({ path: `/containers/${id}/logs`, query: { stdout: true, stderr: true, follow } });
  let passed = 0;
  await readFrames(await logs(true), (chunk) => {
    passed += chunk.length;
    onChunk(chunk);
  });
  await api.call({ method: "POST", path: `/containers/${id}/wait`, timeoutMs: 0 });
  // The engine may end a followed log before the last bytes of a container that has just ended.
  await readFrames(await logs(false), (chunk) => {
    const rest = chunk.subarray(Math.min(passed, chunk.length));
    passed -= chunk.length - rest.length;
    if (rest.length > 0) onChunk(rest);
  });
}
