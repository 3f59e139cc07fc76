import type { Handlers } from "../context.ts";
import { readEntries } from "./activity.ts";

export const activity: Handlers<"activity"> = {
  async list(ctx, { query }) {
    const { entries, next_cursor } = await readEntries(ctx, {}, query);
    return { activity: entries, next_cursor };
  },
};
