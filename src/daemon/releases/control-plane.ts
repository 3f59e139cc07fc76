import { mkdirSync } from "node:fs";
import { request } from "node:http";
import { basename, join } from "node:path";
import { startDetached } from "../../kit/exec.ts";
import type { OwnVersion } from "../../kit/own-version.ts";
import { identify, isAlive, sendSignal } from "../../kit/processes.ts";
import { ownGroup, ownLegacyGroup, unitNames } from "../../kit/tenant-group.ts";
import { until } from "../../kit/until.ts";
import { parseJson } from "../../kit/parse-json.ts";
import { givenSettings, pathsIn, type Config } from "../config.ts";
import { holderOf, isDataFolderHeld } from "../data-folder.ts";
import { repeatedStarts, restartUnit } from "../systemd/run-unit-command.ts";

/**
 * Ends the control plane of the data folder, if one runs, and starts `starter`. A service is restarted by systemd, from the current version;
 * otherwise the new one runs in the background, with its output in `logs/berthd.log`. Returns a function to call about every second: it
 * repeats a start that ended, as systemd does, and tells whether that was in vain.
 */
export async function restartControlPlane(
  config: Config,
  service: Supervisor,
  starter: string,
): Promise<() => Promise<boolean>> {
  if (service !== null) {
    await restartUnit(service);
    return async () => (await repeatedStarts(service)) >= mostRepeatedStarts;
  }
  await endControlPlane(config);
  const { logs } = pathsIn(config.dataDir);
  mkdirSync(logs, { recursive: true, mode: 0o700 });
  const options = { env: startEnvironment(config) };
  const begin = async () =>
    identify(await startDetached({ file: starter, args: ["start"] }, join(logs, "berthd.log"), options));
  let started = await begin();
  let repeated = 0;
  return async () => {
    // One that a killed upgrade had just started may have been faster: then this one ends, and that one serves.
    if ((started !== undefined && isAlive(started)) || isDataFolderHeld(config.dataDir)) return false;
    if (repeated >= mostRepeatedStarts) return true;
    repeated += 1;
    started = await begin();
    return false;
  };
}

/** A start may fail for a moment, because of what ends beside it. */
const mostRepeatedStarts = 3;

/** What `/readyz` reports. */
export interface Readiness extends OwnVersion {
  readonly isReady: boolean;
  /** The first part that does not work, as a sentence. */
  readonly detail: string | null;
}

const requestTimeoutMs = 10_000;
const stopTimeoutMs = 150_000;

/** Returns null when nothing listens, or something else than Berth. */
export async function readReadiness(config: Config): Promise<Readiness | null> {
  const answer = await ask({ config, port: config.httpPort, path: "/readyz" });
  if (answer === null) return null;
  const body = parseJson<ReadyBody | null>(answer.text);
  if (body?.checks === undefined) return null;
  const failing = body.checks.find(({ ok }) => !ok);
  const detail = failing === undefined ? null : `${failing.name}: ${failing.detail ?? "not ready"}`;
  return { version: body.version, commit: body.commit, isReady: answer.status === 200, detail };
}

type ReadyBody = OwnVersion & { readonly checks?: readonly { name: string; ok: boolean; detail: string | null }[] };

/** Returns the status of a hostname's first page, through the edge; null when it does not answer. */
export async function askApplication(config: Config, hostname: string): Promise<number | null> {
  return (await ask({ config, port: config.edgePort, path: "/", host: hostname }))?.status ?? null;
}

interface Question {
  readonly config: Pick<Config, "listen">;
  readonly port: number;
  readonly path: string;
  readonly host?: string;
}

function ask({ config: { listen }, port, path, host }: Question): Promise<{ status: number; text: string } | null> {
  const address = listen === "0.0.0.0" ? "127.0.0.1" : listen === "::" ? "::1" : listen;
  const headers = host === undefined ? {} : { host };
  return new Promise((resolve) => {
    const asked = request({ host: address, port, path, headers, timeout: requestTimeoutMs }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("end", () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      response.once("error", () => resolve(null));
    });
    asked.once("timeout", () => asked.destroy());
    asked.once("error", () => resolve(null));
    asked.end();
  });
}

/** Whose systemd runs a control plane as its service; null: none. */
export type Supervisor = "system" | "user" | null;

/** Returns whose service this process is. */
export function ownSupervisor(): Supervisor {
  const folder = (ownGroup() ?? ownLegacyGroup())?.folder ?? "";
  if (basename(folder) !== unitNames.controlPlane) return null;
  return folder.includes("/user@") ? "user" : "system";
}

async function endControlPlane({ dataDir }: Config): Promise<void> {
  const holder = holderOf(dataDir);
  if (holder === undefined) return;
  const isGone = () => (isAlive(holder) ? undefined : true);
  sendSignal(holder, "SIGTERM");
  if ((await until(isGone, { timeoutMs: stopTimeoutMs })) === undefined) sendSignal(holder, "SIGKILL");
  await until(isGone, { timeoutMs: stopTimeoutMs });
}

export function startEnvironment(config: Config): Record<string, string> {
  return { ...config.toolEnvironment, ...givenSettings() };
}
