import { diskUseOf, imagesOverLimit } from "../../features/disk/disk.ts";
import { linkSignals } from "../../kit/link-signals.ts";
import { until } from "../../kit/until.ts";
import type { Failure } from "../../ports/failure.ts";
import type { Platform } from "../platform.ts";

type Project = { readonly org_id: string; readonly project_id: string };

/**
 * Returns why a build can't start for lack of space: the disk is nearly full, or the project's images exceed their limit even without its
 * caches. Undefined if it may start.
 */
export async function whyNoRoom(platform: Platform, { org_id, project_id }: Project): Promise<Failure | undefined> {
  const { db, ports, settings } = platform;
  if (await isShort(ports)) return storageFull;
  const { use, limits } = await diskUseOf(db, { org_id, project_id }, settings.disk);
  if ((use.images_bytes ?? 0) <= limits.images_bytes) return undefined;
  await ports.builder.clearCaches(project_id);
  const bytes = (await ports.builder.diskBytes(project_id)) ?? 0;
  if (bytes <= limits.images_bytes) return undefined;
  const { error, hint } = imagesOverLimit(bytes, limits);
  return { stage: "build", code: "disk_limit_reached", summary: error, hint, log_tail: [] };
}

const makingRoomMs = 15_000;

/**
 * Waits until the disk has space again, after a build was aborted for lack of it: its files are deleted only after it ends, and until then
 * its owner's next push would be refused. Gives up after some seconds, because something else may be filling the disk.
 */
export async function untilRoom({ ports }: Platform, signal: AbortSignal): Promise<void> {
  await until(async () => ((await isShort(ports)) ? undefined : true), {
    timeoutMs: makingRoomMs,
    atMostMs: 250,
    signal,
  }).catch(() => {});
}

async function isShort({ dataDisk, builder }: Pick<Platform["ports"], "dataDisk" | "builder">): Promise<boolean> {
  return (await dataDisk.observe()).is_short || (await builder.isShortOfSpace());
}

// The data disk can gain some hundred MiB in this time, and a check costs one system call; the builder's check queries a container engine.
const diskPeriodMs = 100;
const builderPeriodMs = 1000;

const every = (periodMs: number, look: () => Promise<unknown>) => setInterval(() => look().catch(() => {}), periodMs);

/** Returns a signal that also aborts when the disk runs short of space; `isShort` tells whether that was the reason. */
export function abortWhenShort(platform: Platform, signal: AbortSignal) {
  const short = new AbortController();
  const linked = linkSignals(signal, short.signal);
  const abort = (found: boolean) => found && short.abort(new Error("the disk is short of space"));
  const { dataDisk, builder } = platform.ports;
  const timers = [
    every(diskPeriodMs, async () => abort((await dataDisk.observe()).is_short)),
    every(builderPeriodMs, async () => abort(await builder.isShortOfSpace())),
  ];
  return {
    signal: linked.signal,
    isShort: () => short.signal.aborted,
    stop() {
      for (const timer of timers) clearInterval(timer);
      linked.release();
    },
  };
}

export const storageFull: Failure = {
  stage: "build",
  code: "storage_full",
  summary: "The platform's disk is too full for a build.",
  hint: "Ask the operator to free space, then push again.",
  log_tail: [],
};
