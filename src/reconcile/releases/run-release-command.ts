import { setTimeout as sleep } from "node:timers/promises";
import { isOfBuild } from "../../contract/states.ts";
import { createLineSplitter } from "../../kit/log-lines.ts";
import type { Failure } from "../../ports/failure.ts";
import type { Workload } from "../../ports/runtime.ts";
import { requireLease } from "../../store/leases.ts";
import { copyData } from "./copy-data.ts";
import { rehearse } from "./rehearse.ts";
import { releaseCommandFailure } from "./release-failures.ts";
import type { Release } from "./start-processes.ts";

/** How long a statement of a rehearsed release command waits for a lock: all later queries of the application wait behind it. */
const lockTimeoutMs = 5000;
const pausesMs = [1000, 5000, 15_000];

/** As PostgreSQL says it, and its code as drivers show it. */
const lockTimedOut = /canceling statement due to lock timeout|\b55P03\b/;

/** Runs the release command, first on a copy of the data, then on the data itself. Returns undefined if it succeeded, or there is none. */
export async function runReleaseCommand(release: Release): Promise<Failure | undefined> {
  const { deployment, workload, log, signal } = release;
  const command = deployment.image.release_command;
  if (command === null || !isOfBuild(deployment.trigger)) return undefined;
  const rehearsed = await rehearse(release, command);
  if (typeof rehearsed !== "string") return rehearsed;
  const obstacle = await copyData(release);
  if (obstacle !== undefined) return obstacle;
  log.step(`Running the release command: ${command}`);
  if (rehearsed === "skipped") return (await runOnce(release, workload, command)).failure;
  const bounded = { ...workload, env: withLockTimeout(workload.env) };
  for (const pauseMs of [...pausesMs, null]) {
    const { failure, waitedTooLong } = await runOnce(release, bounded, command);
    if (failure === undefined || !waitedTooLong || pauseMs === null) return failure;
    log.problem(`A lock was not free within ${lockTimeoutMs / 1000} s; trying again in ${pauseMs / 1000} s`);
    await sleep(pauseMs, undefined, { signal });
  }
  return undefined;
}

async function runOnce({ platform, lease, log, signal }: Release, workload: Workload, command: string) {
  let waitedTooLong = false;
  const lines = createLineSplitter((text) => {
    waitedTooLong ||= lockTimedOut.test(text);
    log.detail(text);
  });
  const limits = { timeoutMs: platform.settings.releaseTimeoutMs, silenceMs: platform.settings.buildLimits.silenceMs };
  await requireLease(platform.db, lease);
  const result = await platform.ports.runtime.runOnce(workload, { command, ...limits, signal, onOutput: lines.push });
  lines.end();
  return { failure: releaseCommandFailure(result, command), waitedTooLong };
}

/** Sets the limit in the address of the database, which every client understands, and in libpq's variable. */
function withLockTimeout(env: Workload["env"]): Workload["env"] {
  const option = `-c lock_timeout=${lockTimeoutMs}`;
  const url = env["DATABASE_URL"];
  if (url === undefined) return env;
  const query = `${url.includes("?") ? "&" : "?"}options=${encodeURIComponent(option)}`;
  return { ...env, DATABASE_URL: url + query, PGOPTIONS: [env["PGOPTIONS"], option].filter(Boolean).join(" ") };
}
