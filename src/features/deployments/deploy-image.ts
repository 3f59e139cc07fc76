import { registryOf } from "../../contract/image-name.ts";
import { buildUpload, requireUpload } from "../builds/builds.ts";
import type { Context } from "../context.ts";
import { privateHostProblem } from "../registries/registries.ts";

/**
 * Deploys a ready image by building a Dockerfile that starts from it. So the image is pulled, checked, logged, deployed and rolled back
 * like any build, and its commit records what is served.
 */
export async function deployImage(ctx: Context<"deployments.create">, image: string, commit: string | undefined) {
  if (commit !== undefined) return ctx.fail("invalid_request", { error: "Give either `commit` or `image`." });
  const { ports, settings } = ctx.platform;
  const problem = privateHostProblem(registryOf(image), settings.privateRegistries);
  if (problem !== undefined)
    return ctx.fail("invalid_request", { error: problem, details: [{ path: "image", message: problem }] });
  await requireUpload(ctx);
  const { root } = ctx.project;
  const path = root === null ? "Dockerfile" : `${root}/Dockerfile`;
  const files = [{ path, content: Buffer.from(`# The image that is deployed as it is.\nFROM ${image}\n`) }];
  const findRuntime = async () => (await ports.runtime.describe()).name.split(",").find((name) => name !== "process");
  const look = async () => {
    if ((await findRuntime()) === undefined) ctx.fail("images_not_supported");
  };
  const outcome = async () => {
    const runtime = (await findRuntime()) ?? ctx.fail("images_not_supported");
    const { build_id, commit: made } = await buildUpload(ctx, {
      ...{ content: { files }, removed: [], keepsOthers: false, message: `Image ${image}`, runtime },
    });
    return { build_id, commit: made };
  };
  return { changesLate: true as const, look, outcome };
}
