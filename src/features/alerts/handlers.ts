import { limits } from "../../contract/limits.ts";
import type { Handlers } from "../context.ts";
import { listAlerts } from "./queries.ts";

export const alerts: Handlers<"alerts"> = {
  async list(ctx, { query }) {
    const limit = limits.alerts_listed;
    const rows = await listAlerts(ctx.tx, { all: query.all, beforeId: query.cursor, limit: limit + 1 });
    const page = rows.slice(0, limit);
    return {
      alerts: page.map(({ name, machine, subject, ...alert }) => ({
        ...alert,
        check: name,
        machine: machine || null,
        subject: subject || null,
      })),
      next_cursor: rows.length > limit ? (page.at(-1)?.id ?? null) : null,
    };
  },
};
