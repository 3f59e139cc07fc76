import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { unpackSource } from "../../building/unpack.ts";
import type { Image } from "../../ports/builder.ts";
import type { BuildRun } from "./build-run.ts";
import { dockerfileOf, fromDockerfile } from "./from-dockerfile.ts";
import { fromPlan } from "./from-plan.ts";

/** Unpacks the source, builds its image and copies it to the engine that runs it. */
export async function makeImage(run: BuildRun): Promise<Image> {
  const { options, request, time, folder, log } = run;
  const app = join(folder, "app");
  await mkdir(app);
  const uid = process.getuid?.() ?? 0;
  const ignoresLfs = request.commands?.lfs === "ignore";
  const unpacking = { source: request.source(), folder: app, maxBytes: options.maxSourceBytes, uid, ignoresLfs };
  const tree = await unpackSource({ ...unpacking, signal: time.signal }, log);
  const dockerfile = dockerfileOf(app, request.commands);
  return dockerfile === null ? await fromPlan(run, tree) : await fromDockerfile(run, tree, dockerfile);
}
