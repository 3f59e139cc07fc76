import { capabilities } from "../../contract/capabilities.ts";
import { openapi } from "../../contract/openapi.ts";
import { berthFileSchema } from "../../contract/berth-file.ts";
import type { Handlers } from "../context.ts";

export const selfDescription: Handlers<"self-description"> = {
  async capabilities(ctx) {
    return capabilities(ctx.platform.version, ctx.platform.limits);
  },

  async "berth-file"() {
    return berthFileSchema as { $schema: string };
  },

  async openapi(ctx) {
    return openapi(ctx.platform.version);
  },
};
