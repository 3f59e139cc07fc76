import { diskUseOf, imagesOverLimit } from "../../features/disk/disk.ts";
import { linkSignals, type LinkedSignal } from "../../kit/link-signals.ts";
import { repeatEvery } from "../../kit/repeat-every.ts";
import { until } from "../../kit/until.ts";
import type { Failure } from "../../ports/failure.ts";
import { sourceAndImagesBytes } from "../images-bytes.ts";
import type { Platform } from "../platform.ts";

// The data disk can gain some hundred MiB in this time, and a check costs one system call; the builder's check queries a container engine.
const diskPeriodMs = 100;
const builderPeriodMs = 1000;
/** How long an ended build's files may take to disappear before the next build is ended, too. */
const nextAfterMs = { short: 15_000, full: 1000 } as const;
/** A build that takes less is not why the disk runs short, so it waits for the longer time even if the disk is full. */
const smallBytes = 64 * 1024 ** 2;
/** The size assumed for a build that its builder cannot measure: as much as many builds use, but less than fills a disk. */
const unmeasuredBytes = 512 * 1024 ** 2;

/** Watches the disk's free space for the running builds of this control plane. */
export type DiskRoom = ReturnType<typeof createDiskRoom>;

/** Ends builds while the disk is short of space, the largest first: one project's mistake must not end its neighbours' builds. */
export function createDiskRoom({ dataDisk, builder }: Pick<Platform["ports"], "dataDisk" | "builder">) {
  const running = new Map<string, Running>();
  let looking: (() => void)[] = [];
  let endedMs = -Infinity;
  const endLargest = async (urgency: keyof typeof nextAfterMs) => {
    const isTooSoon = (of = urgency) => performance.now() - endedMs < nextAfterMs[of];
    if (isTooSoon()) return;
    const candidates = [...running].filter(([, { shortage }]) => shortage === undefined);
    const measured = candidates.map(async ([id, build]) => ({ build, bytes: await builder.takenBytes(id) }));
    const [largest] = (await Promise.all(measured)).toSorted((one, other) => weightOf(other) - weightOf(one));
    if (largest === undefined || isTooSoon(weightOf(largest) < smallBytes ? "short" : urgency)) return;
    endedMs = performance.now();
    largest.build.shortage = shortageOf(largest.bytes);
    largest.build.linked.abort(new Error("the disk is short of space"));
  };
  const look = async () => {
    const { is_short, is_full } = await dataDisk.observe();
    if (is_short) await endLargest(is_full ? "full" : "short");
  };
  const lookAtImages = async () => {
    if (await builder.isShortOfSpace()) await endLargest("short");
  };
  return {
    /** Returns a signal that also aborts when this build has to end because the disk runs short of space. */
    enter(buildId: string, signal: AbortSignal) {
      const build: Running = { linked: linkSignals(signal), shortage: undefined };
      if (running.size === 0) looking = [repeatEvery(diskPeriodMs, look), repeatEvery(builderPeriodMs, lookAtImages)];
      running.set(buildId, build);
      return {
        signal: build.linked.signal,
        /** Returns why the build had to end for lack of space; undefined if it had not. */
        shortage: () => build.shortage,
        /** Call it when the build has ended. */
        leave() {
          build.linked.release();
          running.delete(buildId);
          if (running.size === 0) for (const stop of looking) stop();
        },
      };
    },
  };
}

interface Running {
  readonly linked: LinkedSignal;
  /** Why the build had to end for lack of space. */
  shortage: Failure | undefined;
}

const weightOf = ({ bytes }: { readonly bytes: number | null }): number => bytes ?? unmeasuredBytes;

function shortageOf(bytes: number | null): Failure {
  const mib = Math.round((bytes ?? 0) / 1024 ** 2);
  if (mib === 0) return storageFull;
  return {
    ...storageFull,
    summary: `The platform's disk ran short of space, and of the running builds this one took the most: ${mib} MiB.`,
    hint: "Let the build write less, or ask the operator to free space. Then push again.",
  };
}

type Project = { readonly org_id: string; readonly project_id: string };

/** Returns why a build can't start: the disk is nearly full, or the project's images exceed their limit even without caches. */
export async function whyNoRoom(platform: Platform, { org_id, project_id }: Project): Promise<Failure | undefined> {
  const { db, ports, settings } = platform;
  if (await isShort(ports)) return storageFull;
  const { use, limits } = await diskUseOf(db, { org_id, project_id }, settings.disk);
  if ((use.images_bytes ?? 0) <= limits.images_bytes) return undefined;
  await ports.builder.clearCaches(project_id);
  const bytes = (await sourceAndImagesBytes(ports, project_id)) ?? 0;
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

const storageFull: Failure = {
  stage: "build",
  code: "storage_full",
  summary: "The platform's disk is too full for a build.",
  hint: "Ask the operator to free space, then push again.",
  log_tail: [],
};
