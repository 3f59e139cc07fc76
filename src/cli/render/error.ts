import { ApiError, ConnectionError } from "../../contract/client.ts";
import type { NextCall } from "../../contract/errors.ts";
import type { CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { commandFor } from "../route-commands.ts";
import { oneLine } from "./text.ts";

/** Prints a failure to stderr: sentence, invalid fields, hint, code and request id; with `--json`, one JSON document. */
export function renderError(ctx: CliContext, fault: unknown): void {
  const told = describe(ctx, fault);
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

function describe(ctx: CliContext, fault: unknown): ToldError {
  if (fault instanceof ApiError) {
    const { status, requestId } = fault;
    return {
      ...fault.body,
      error: fault.code === "unauthorized" ? "The platform does not accept your token." : fault.message,
      code: fault.code,
      hint: hintFor(ctx, fault),
      status,
      request_id: requestId,
    };
  }
  if (fault instanceof CliError) return { error: fault.message, code: fault.code, hint: fault.hint };
  if (fault instanceof ConnectionError) return { error: fault.message, code: fault.kind, hint: fault.hint };
  if (fault instanceof Error) return { error: fault.message, code: "fault" };
  return { error: "Something went wrong.", code: "fault" };
}

// Replaces the API's hint, which is for programs that call it, by one that names a command.
function hintFor(ctx: CliContext, fault: ApiError): string | undefined {
  const { hint, retryAfterSeconds } = fault;
  const own = ownHints[fault.code]?.(ctx, fault);
  if (own !== undefined) return own;
  const command = commandFor((fault.body["next"] ?? {}) as Partial<NextCall>);
  // The API's hint may name the command already.
  if (command !== undefined && hint?.includes(`\`${command}`) !== true)
    return [hint, `Run \`${command}\`.`].filter((part) => part !== undefined).join(" ");
  return hint ?? (retryAfterSeconds === undefined ? undefined : `Try again in ${retryAfterSeconds} s.`);
}

const mayWhat = "`berth whoami` shows what your token may do.";

const ownHints: Readonly<Record<string, (ctx: CliContext, fault: ApiError) => string | undefined>> = {
  approval_required: (_, { body, hint }) => approvalHint(body["approval"]) ?? hint,
  unauthorized: ({ environment }) =>
    environment.token === undefined
      ? "It expired, was revoked, or belongs to another platform. Run `berth login`."
      : "The token comes from BERTH_TOKEN: set that to a valid token, or unset it and run `berth login`.",
  insufficient_scope: () => `${mayWhat} An owner of the organization makes other tokens with \`berth tokens create\`.`,
  owner_only: () => `${mayWhat} Ask an owner of the organization.`,
  operator_only: () => `${mayWhat} Ask the platform's operator.`,
};

// In the CLI, a command waits for the approval.
function approvalHint(approval: unknown): string | undefined {
  const { id } = (approval ?? {}) as { readonly id?: unknown };
  if (typeof id !== "string") return undefined;
  return `Run \`berth approvals wait ${id}\`, and the same command again once it is approved.`;
}

function inWords(ctx: CliContext, told: ToldError): string {
  const paint = ctx.output.stderrPaint();
  const lines = [`${paint.red("Error:")} ${oneLine(told.error)}`];
  const details = (told.details ?? []).map(({ path, message }) => `${oneLine(path)}: ${oneLine(message)}`);
  lines.push(...details.filter((detail) => detail !== oneLine(told.error)).map((detail) => `  ${detail}`));
  if (told.hint !== undefined) lines.push(`  ${paint.yellow("Hint:")} ${oneLine(told.hint)}`);
  // The CLI's own usage errors are clear without a code.
  if (told.code !== "usage")
    lines.push(paint.dim(`  ${told.code}${told.request_id ? `, request ${oneLine(told.request_id)}` : ""}`));
  return lines.join("\n");
}
