import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { unlessStatus, type DockerApi } from "../kit/docker-api.ts";
import type { OneOffCommand, OneOffResult, Terminal, TerminalSize, Workload } from "../ports/runtime.ts";
import { readExit } from "./containers.ts";
import { readFrames } from "./read-frames.ts";
import { removeContainers, startContainers, type DockerParts } from "./start-instance.ts";

/** Runs one command in the workload's image and waits for it. Its container does not outlive this process. */
export async function runOnce(parts: DockerParts, workload: Workload, task: OneOffCommand): Promise<OneOffResult> {
  const key = { workload_id: randomBytes(8).toString("hex"), ordinal: 0, attempt: 1 };
  const { terminal } = task;
  let screen: Duplex | undefined;
  let sendSize = () => Promise.resolve();
  const beforeStart = async (id: string) => {
    if (terminal === undefined) return;
    screen = await attach(parts.api, id, terminal);
    sendSize = followSizes(parts.api, id, terminal);
  };
  const run = { workload, key, role: "once", command: () => task.command, terminal, beforeStart } as const;
  const { app, name } = await startContainers(parts, run);
  try {
    await sendSize();
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
  const quiet = setTimeout(() => silence.abort(), task.silenceMs);
  const kill = () =>
    void unlessStatus(api.call({ method: "POST", path: `/containers/${id}/kill` }), 404, 409).catch(() => {});
  const limits = AbortSignal.any([task.signal, silence.signal, time]);
  limits.addEventListener("abort", kill, { once: true });
  if (limits.aborted) kill();
  try {
    const onChunk = (chunk: Buffer) => {
      quiet.refresh();
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

/** Attaches to the container's terminal before it starts, so that no output is lost. */
async function attach(api: DockerApi, id: string, { input }: Terminal): Promise<Duplex> {
  const query = { stream: true, stdin: true, stdout: true, stderr: true };
  const screen = await api.upgrade({ method: "POST", path: `/containers/${id}/attach`, query });
  screen.on("error", () => {});
  // Sends Ctrl-D, because the engine would only close the connection's input, which the terminal does not notice.
  input.on("end", () => screen.write(ctrlD)).pipe(screen, { end: false });
  return screen;
}

/**
 * Gives the container each new size of the terminal, and returns a function that sends the latest one, for when the container has started:
 * the engine ignores the size given at creation, which it applies only from API version 1.42 on.
 */
function followSizes(api: DockerApi, id: string, { size, onResize }: Terminal): () => Promise<void> {
  // Sends one size after the other: if two were under way at once, the older could be applied last.
  let sent = Promise.resolve();
  let wanted: TerminalSize = size;
  const send = () => {
    const query = { w: wanted.columns, h: wanted.rows };
    return api.call<void>({ method: "POST", path: `/containers/${id}/resize`, query });
  };
  // A container that has not started yet, or has ended, has no terminal.
  const resize = () => (sent = sent.then(send).catch(() => {}));
  onResize((changed) => {
    wanted = changed;
    void resize();
  });
  return resize;
}

const ctrlD = "\x04";

interface Screen {
  readonly screen: Duplex;
  readonly onChunk: (chunk: Buffer) => void | Promise<void>;
  readonly limits: AbortSignal;
}

/**
 * Forwards terminal output until the container has exited. After a limit it no longer waits for a slow reader, which would keep the
 * container. A broken connection only ends the output: a key that the person types while the command ends can break it.
 */
async function passScreen(api: DockerApi, id: string, { screen, onChunk, limits }: Screen): Promise<void> {
  const isOver = new Promise<void>((resolve) => limits.addEventListener("abort", () => resolve(), { once: true }));
  const pass = async () => {
    for await (const chunk of untilBroken(screen)) await onChunk(chunk);
  };
  await Promise.race([pass(), isOver]);
  await api.call({ method: "POST", path: `/containers/${id}/wait`, timeoutMs: 0 });
}

async function* untilBroken(screen: Duplex): AsyncGenerator<Buffer> {
  try {
    yield* screen as AsyncIterable<Buffer>;
  } catch {
    // Only ends the output; the container's exit code is the command's result.
  }
}

/** Forwards the container's output until it has exited, each byte once. */
async function passOutput(api: DockerParts["api"], id: string, onChunk: (chunk: Buffer) => void): Promise<void> {
  const logs = (follow: boolean) =>
    api.stream({ path: `/containers/${id}/logs`, query: { stdout: true, stderr: true, follow } });
  let passed = 0;
  await readFrames(await logs(true), (chunk) => {
    passed += chunk.length;
    onChunk(chunk);
  });
  await api.call({ method: "POST", path: `/containers/${id}/wait`, timeoutMs: 0 });
  // Reads the log again: the engine may end a followed one before the last bytes of a container that has just exited.
  await readFrames(await logs(false), (chunk) => {
    const rest = chunk.subarray(Math.min(passed, chunk.length));
    passed -= chunk.length - rest.length;
    if (rest.length > 0) onChunk(rest);
  });
}
