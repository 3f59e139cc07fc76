import { capabilities } from "../../contract/capabilities.ts";
import { openapi } from "../../contract/openapi.ts";
import type { Handlers } from "../context.ts";

export const selfDescription: Handlers<"self-description"> = {
  async capabilities(ctx) {
    return capabilities(ctx.platform.version, ctx.platform.limits);
  },

  async openapi(ctx) {
    return openapi(ctx.platform.version);
  },
};
