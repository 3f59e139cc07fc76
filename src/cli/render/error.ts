import { ApiError, ConnectionError } from "../../contract/client.ts";
import type { CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { oneLine } from "./text.ts";

/** Says on stderr what went wrong: sentence, wrong fields, hint, code and request id; one JSON document with `--json`. */
export function renderError(ctx: CliContext, fault: unknown): void {
  const told = describe(fault);
  const { stderr } = ctx.environment;
  if (ctx.options.json === true) stderr.write(`${JSON.stringify(told, null, 2)}\n`);
  else stderr.write(`${inWords(ctx, told)}\n`);
}

interface ToldError {
  readonly error: string;
  readonly code: string;
  readonly hint?: string | undefined;
  readonly details?: readonly { readonly path: string; readonly message: string }[];
  readonly status?: number;
  readonly request_id?: string | null;
}

function describe(fault: unknown): ToldError {
  if (fault instanceof ApiError) {
    const { status, requestId } = fault;
    return {
      ...fault.body,
      error: fault.message,
      code: fault.code,
      hint: hintFor(fault),
      status,
      request_id: requestId,
    };
  }
  if (fault instanceof CliError) return { error: fault.message, code: fault.code, hint: fault.hint };
  if (fault instanceof ConnectionError) return { error: fault.message, code: fault.kind, hint: fault.hint };
  if (fault instanceof Error) return { error: fault.message, code: "fault" };
  return { error: "Something went wrong.", code: "fault" };
}

function hintFor(fault: ApiError): string | undefined {
  if (fault.code === "approval_required") return approvalHint(fault);
  if (fault.hint !== undefined) return fault.hint;
  if (fault.code === "unauthorized") return "Run `berth login` with a valid token.";
  if (fault.retryAfterSeconds !== undefined) return `Try again in ${fault.retryAfterSeconds} s.`;
  return undefined;
}

// What the API says is for programs that call it; here a command does the waiting.
function approvalHint({ body, hint }: ApiError): string | undefined {
  const { id } = (body["approval"] ?? {}) as { readonly id?: unknown };
  if (typeof id !== "string") return hint;
  return `Run \`berth approvals wait ${id}\`, and the same command again once it is approved.`;
}

function inWords(ctx: CliContext, told: ToldError): string {
  const paint = ctx.output.stderrPaint();
  const lines = [`${paint.red("Error:")} ${oneLine(told.error)}`];
  for (const { path, message } of told.details ?? []) lines.push(`  ${oneLine(path)}: ${oneLine(message)}`);
  if (told.hint !== undefined) lines.push(`  ${paint.yellow("Hint:")} ${oneLine(told.hint)}`);
  // The CLI's own usage errors need no code to be understood or reported.
  if (told.code !== "usage")
    lines.push(paint.dim(`  ${told.code}${told.request_id ? `, request ${oneLine(told.request_id)}` : ""}`));
  return lines.join("\n");
}
