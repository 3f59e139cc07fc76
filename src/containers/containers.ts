import { constants } from "node:os";
import { unlessStatus, type DockerApi } from "../kit/docker-api.ts";
import { processIds, readProcessFile } from "../kit/processes.ts";
import { readProcessTree, type TreeProcess, behindWrappers, wrappers } from "../kit/process-tree.ts";
import type { Instance, InstanceExit, InstanceKey } from "../ports/runtime.ts";
import { labels, type ContainerRole, type DockerContext } from "./settings.ts";
import { OutputLog } from "./output-log.ts";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readFrames } from "./read-frames.ts";

const { signals } = constants;

export interface ListedContainer {
  readonly Id: string;
  readonly State: string;
  readonly Labels: Readonly<Record<string, string>>;
  readonly NetworkSettings: {
    readonly Networks: Readonly<Record<string, { readonly IPAddress: string }>> | null;
  } | null;
}

export interface ContainerDetails {
  readonly Id: string;
  readonly State: {
    readonly Running: boolean;
    readonly Pid: number;
    readonly ExitCode: number;
    readonly OOMKilled: boolean;
    readonly FinishedAt: string;
  };
  readonly Config: {
    readonly Labels: Readonly<Record<string, string>>;
    /** As written in the image. */
    readonly StopSignal?: string;
  };
}

/** Lists the containers of this data folder in one call, or only those that also have `label`. */
export function listContainers({ api, tag }: DockerContext, label?: string): Promise<readonly ListedContainer[]> {
  const filters = { label: [`${labels.runtime}=${tag}`, ...(label === undefined ? [] : [label])] };
  return api.call({ path: "/containers/json", query: { all: true, filters } });
}

export const roleOf = (container: ListedContainer): ContainerRole => container.Labels[labels.role] as ContainerRole;

export const keyOf = ({ Labels: own }: ListedContainer): InstanceKey => ({
  workload_id: own[labels.workload] ?? "",
  ordinal: Number(own[labels.ordinal]),
  attempt: Number(own[labels.attempt]),
});

export const sameKey = (one: InstanceKey, other: InstanceKey): boolean =>
  one.workload_id === other.workload_id && one.ordinal === other.ordinal && one.attempt === other.attempt;

/** A container in state `created` never ran: Berth crashed before starting it, and the attempt is started again. */
export const hasStarted = ({ State: state }: ListedContainer): boolean =>
  ["running", "paused", "restarting", "exited", "dead"].includes(state);

export const isRunning = ({ State: state }: ListedContainer): boolean =>
  ["running", "paused", "restarting"].includes(state);

export function readContainer(api: DockerApi, id: string): Promise<ContainerDetails> {
  return api.call({ path: `/containers/${id}/json` });
}

/** Returns how a container exited; undefined while it runs. */
export async function readExit(api: DockerApi, id: string): Promise<InstanceExit | undefined> {
  const { State: state } = await readContainer(api, id);
  if (state.Running) return undefined;
  const out_of_memory = state.OOMKilled && state.ExitCode !== 0;
  return { code: state.ExitCode, out_of_memory, at: new Date(state.FinishedAt) };
}

export function toInstance(
  rootDir: string,
  app: ListedContainer,
  { network, exit }: { readonly network: ListedContainer | undefined; readonly exit: InstanceExit | null },
): Instance {
  const { Labels: own } = app;
  const host = Object.values(network?.NetworkSettings?.Networks ?? {})[0]?.IPAddress ?? "";
  const port = own[labels.port] ?? "";
  return {
    ...keyOf(app),
    project_id: own[labels.project] ?? "",
    image_ref: own[labels.image] ?? "",
    state: exit === null ? "running" : "exited",
    address: exit !== null || port === "" || host === "" ? null : { host, port: Number(port) },
    started_at: new Date(own[labels.started] ?? 0),
    output_mark: new OutputLog(rootDir, app.Id).mark(),
    exit,
  };
}

/** Creates and starts a container. `beforeStart` runs in between, with the container's id. */
export async function startContainer(
  api: DockerApi,
  name: string,
  body: object,
  beforeStart?: (id: string) => Promise<void>,
): Promise<string> {
  const query = { name };
  const { Id: id } = await api.call<{ Id: string }>({ method: "POST", path: "/containers/create", query, body });
  await beforeStart?.(id);
  await api.call({ method: "POST", path: `/containers/${id}/start` });
  return id;
}

/** Kills a container if it runs and removes it with its anonymous volumes. A missing container is not an error. */
export async function removeContainer(api: DockerApi, idOrName: string): Promise<void> {
  const call = { method: "DELETE", path: `/containers/${idOrName}`, query: { force: true, v: true } } as const;
  // 409: the engine is already removing it.
  await unlessStatus(api.call(call), 404, 409);
}

/** Sends the image's STOPSIGNAL (default SIGTERM) to the application and, after `graceMs`, SIGKILL to the whole container. */
export async function endContainer(api: DockerApi, id: string, graceMs: number): Promise<void> {
  const details = await unlessStatus(readContainer(api, id), 404);
  if (!details?.State.Running) return;
  if (graceMs > 0) {
    // Does not wait for it: a command in a container may hang. If it fails, SIGKILL follows all the same.
    const main = { id, pid: details.State.Pid };
    void signalApplication(api, main, stopSignal(details.Config.StopSignal)).catch(() => {});
    if (await hasEnded(api, id, graceMs)) return;
  }
  await unlessStatus(api.call({ method: "POST", path: `/containers/${id}/kill` }), 404, 409);
  if (!(await hasEnded(api, id, 10_000))) throw new Error(`the container ${id.slice(0, 12)} does not end`);
}

/** Parses STOPSIGNAL as Docker does: `SIGQUIT`, `quit`, `3` or `SIGRTMIN+3`. */
export function stopSignal(name = ""): number {
  const word = name.toUpperCase().replace(/^SIG/, "");
  const [, base, distance = "0"] = /^(RTMIN|RTMAX)(?:([+-]\d+))?$/.exec(word) ?? [];
  const number = base === undefined ? Number(word || Number.NaN) : realTime[base as "RTMIN"] + Number(distance);
  const known = (signals as Readonly<Record<string, number>>)[`SIG${word}`];
  return known ?? (Number.isInteger(number) && number > 0 && number <= realTime.RTMAX ? number : signals.SIGTERM);
}

// Numbers as programs see them: the C library reserves the kernel's first two real-time signals.
const realTime = { RTMIN: 34, RTMAX: 64 };

/** Waits until the container has stopped; returns false on timeout. */
async function hasEnded(api: DockerApi, id: string, timeoutMs: number): Promise<boolean> {
  const signal = AbortSignal.timeout(timeoutMs);
  const wait = api.call({ method: "POST", path: `/containers/${id}/wait`, timeoutMs: 0, signal });
  try {
    await unlessStatus(wait, 404);
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

export function processesIn(init: number): readonly TreeProcess[] {
  return processIds().includes(init) ? readProcessTree().descendantsOf(init) : [];
}

const script = readFileSync(join(import.meta.dirname, "signal-application.sh"), "utf8");

/**
 * Sends a signal to the container's application: its main process, or what it waits for if it is a shell or a package manager. The engine
 * would signal the init process, which forwards it to a shell in front of the application; that shell would exit at once and end the
 * application.
 */
async function signalApplication(
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
