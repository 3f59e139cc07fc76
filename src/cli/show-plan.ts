import type { Answer } from "../contract/client.ts";
import { planLines } from "../contract/plan-lines.ts";
import type { CliContext } from "./context.ts";
import { CliError } from "./failures.ts";

/** Prints what a deploy would do, and throws if it would fail. */
export function showPlan(ctx: CliContext, plan: Answer<"builds.plan">): void {
  ctx.output.result(plan, () => planLines(plan).join("\n"));
  if (plan.failure !== null)
    throw new CliError("deploymentFailed", plan.failure.code, { message: "A deploy of this would fail." });
}
