import type { Handlers } from "../context.ts";
import { countOpen } from "../alerts/alerts.ts";
import { allChecks } from "./queries.ts";
import { shownStatus, worstOf } from "./rules.ts";

export const status: Handlers<"status"> = {
  async get(ctx) {
    const rows = await allChecks(ctx.tx);
    const checks = rows.map((row) => ({
      check: row.name,
      machine: row.machine || null,
      subject: row.subject || null,
      ...shownStatus(row, ctx.now),
      since: row.since,
      last_ok_at: row.last_ok_at,
      checked_at: row.checked_at,
      hint: row.hint,
    }));
    return {
      status: worstOf(checks.map((check) => check.status)),
      checked_at:
        rows
          .map((row) => row.checked_at)
          .sort()
          .at(-1) ?? null,
      open_alerts: await countOpen(ctx.tx),
      checks,
    };
  },
};
