import { z } from "zod";

/** Why a build or a deployment failed. The stages are listed in the order of a deploy. */
export const failure = z.object({
  stage: z.enum(["receive", "detect", "install", "build", "release", "boot", "health", "switch"]),
  code: z.string(),
  summary: z.string(),
  hint: z.string(),
  log_tail: z.array(z.string()).readonly(),
});
