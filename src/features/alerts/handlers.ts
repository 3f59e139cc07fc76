import { pageOf } from "../../kit/page.ts";
import type { Handlers } from "../context.ts";
import { listAlerts } from "./queries.ts";

export const alerts: Handlers<"alerts"> = {
  async list(ctx, { query }) {
    const { shown, next_cursor } = pageOf(await listAlerts(ctx.tx, query), query.limit, ({ id }) => id);
    return {
      alerts: shown.map(({ name, machine, subject, ...alert }) => ({
        ...alert,
        check: name,
        machine: machine || null,
        subject: subject || null,
      })),
      next_cursor,
    };
  },
};
