import { setTimeout as sleep } from "node:timers/promises";
import type { Failure } from "../ports/failure.ts";
import type { BuildLog } from "./build-log.ts";
import type { Platform } from "./platform.ts";

// An engine is restarted within seconds. Work that waits longer keeps its slot from projects whose runtime is there.
const longestMs = 120_000;
const lookEveryMs = 500;

/** Waits for some minutes until a runtime can start something, and logs what is missing. Resolves with the failure if it still cannot. */
export async function awaitRuntime(
  platform: Pick<Platform, "ports">,
  runtime: string | undefined,
  { log, signal }: { readonly log: BuildLog; readonly signal: AbortSignal },
): Promise<Failure | undefined> {
  const end = Date.now() + longestMs;
  for (let waiting = false; ; waiting = true) {
    const failure = await runtimeFailure(platform, runtime);
    if (failure === undefined || Date.now() > end) return failure;
    if (!waiting) log.step(`Waiting: ${failure.summary}`);
    await sleep(lookEveryMs, undefined, { signal });
  }
}

/** Returns why a runtime cannot start anything now; undefined if it can. */
export async function runtimeFailure(
  { ports }: Pick<Platform, "ports">,
  runtime: string | undefined,
): Promise<Failure | undefined> {
  const missing = await ports.runtime.unavailable?.(runtime);
  if (missing === undefined) return undefined;
  const hint = `Ask the operator to look at it, then try again. ${missing.remedy}.`;
  return { stage: "boot", code: "runtime_unavailable", summary: missing.effect, hint, log_tail: [] };
}
