import { diskUseOf, imagesOverLimit } from "../../features/disk/disk.ts";
import { linkSignals } from "../../kit/link-signals.ts";
import type { Failure } from "../../ports/failure.ts";
import type { Platform } from "../platform.ts";

type Project = { readonly org_id: string; readonly project_id: string };

/**
 * Why there is no room for a build: the disk is short, or the project's images are over their limit even without its caches.
 * Undefined when it may begin.
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

async function isShort({ dataDisk, builder }: Pick<Platform["ports"], "dataDisk" | "builder">): Promise<boolean> {
  return (await dataDisk.observe()).is_short || (await builder.isShortOfSpace());
}

/** A signal that also aborts when the disk gets short of space, which `isShort` tells apart from the reasons of `signal`. */
export function abortWhenShort(platform: Platform, signal: AbortSignal) {
  const short = new AbortController();
  const linked = linkSignals(signal, short.signal);
  const timer = setInterval(() => {
    isShort(platform.ports).then(
      (found) => found && short.abort(new Error("the disk is short of space")),
      () => {},
    );
  }, 1000);
  return {
    signal: linked.signal,
    isShort: () => short.signal.aborted,
    stop() {
      clearInterval(timer);
      linked.release();
    },
  };
}

export const storageFull: Failure = {
  stage: "build",
  code: "storage_full",
  summary: "The platform's disk has no room left for a build.",
  hint: "The platform's operator has to make room; then push again.",
  log_tail: [],
};
