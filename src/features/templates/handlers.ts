import type { Handlers } from "../context.ts";
import { readTemplates } from "./templates.ts";

export const templates: Handlers<"templates"> = {
  async list() {
    return { templates: await readTemplates() };
  },
};
