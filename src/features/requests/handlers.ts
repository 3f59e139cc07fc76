import type { Result } from "../../contract/routes.ts";
import { instantOf } from "../../kit/instant.ts";
import type { Context, Handlers } from "../context.ts";
import { createPathTable, requestFilter } from "./rules.ts";

export const requests: Handlers<"requests"> = {
  async list(ctx, { query }) {
    const found: Result<"requests.list">["requests"] = [];
    const isWanted = requestFilter(query);
    await ctx.platform.ports.logStore.visitRequests(ctx.project.id, rangeOf(ctx, query), (request) => {
      if (isWanted(request)) found.push(request);
      return found.length < query.limit;
    });
    return { requests: found };
  },

  async paths(ctx, { query }) {
    const table = createPathTable();
    const isWanted = requestFilter(query);
    await ctx.platform.ports.logStore.visitRequests(ctx.project.id, rangeOf(ctx, query), (request) => {
      if (isWanted(request)) table.add(request);
      return true;
    });
    return table.result(query.sort, query.limit);
  },
};

interface Range {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

function rangeOf({ now }: Pick<Context<"requests.list">, "now">, { since, until }: Range) {
  return {
    ...(since === undefined ? {} : { since: instantOf(since, now) }),
    ...(until === undefined ? {} : { until: instantOf(until, now) }),
  };
}
