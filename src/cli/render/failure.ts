import type { Build } from "../follow.ts";
import { oneLine, terminalText, type Paint } from "./text.ts";

/** Formats why a build or deployment failed: stage, summary and hint, then the end of its log. */
export function renderFailure(paint: Paint, failure: NonNullable<Build["failure"]>): string {
  const lines = [
    `${paint.red(`Failed in ${failure.stage}:`)} ${oneLine(failure.summary)} ${paint.dim(`(${oneLine(failure.code)})`)}`,
  ];
  if (failure.hint !== "") lines.push(`  ${paint.yellow("Hint:")} ${oneLine(failure.hint)}`);
  lines.push(...failure.log_tail.map((line) => `  ${paint.dim("|")} ${terminalText(line, { colours: false })}`));
  return lines.join("\n");
}
