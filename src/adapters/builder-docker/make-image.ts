import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { isPlain } from "../../building/is-plain.ts";
import { unpackSource } from "../../building/unpack.ts";
import type { Image } from "../../ports/builder.ts";
import { dockerfileName, type BuildRun } from "./build-run.ts";
import { fromDockerfile } from "./from-dockerfile.ts";
import { fromPlan } from "./from-plan.ts";

/** Unpacks the source, builds its image and copies it to the engine that runs it. */
export async function makeImage(run: BuildRun): Promise<Image> {
  const { options, request, time, folder, log } = run;
  const app = join(folder, "app");
  await mkdir(app);
  const uid = process.getuid?.() ?? 0;
  const unpacking = { source: request.source(), folder: app, maxBytes: options.maxSourceBytes, uid };
  const tree = await unpackSource({ ...unpacking, signal: time.signal }, log);
  return isPlain(app, dockerfileName, "file") ? await fromDockerfile(run, tree) : await fromPlan(run, tree);
}
