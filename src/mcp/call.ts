import type { AnyInput } from "../contract/client.ts";
import { changes, type Row } from "../contract/table.ts";
import { ApiError, InvalidCall } from "../contract/client-errors.ts";
import { prepareOutcome } from "./prepare-outcome.ts";
import { argumentsOf, awaitedRows, spellingOf, type Argument } from "./input-schema.ts";
import { presentAnswer, type ToolAnswer } from "./present.ts";
import type { Session } from "./session.ts";

export type Arguments = Readonly<Record<string, unknown>>;

/** Calls a row with a tool's arguments. Throws what the client throws, and `InvalidCall` for arguments that the row does not accept. */
export async function callRow(session: Session, row: Row, given: Arguments): Promise<ToolAnswer> {
  return send(session, row, { input: inputOf(row, { given }), wait: given["wait"] === true });
}

/** Calls a row with separate `params`, `query` and `body`. */
export async function callParts(session: Session, row: Row, parts: Arguments): Promise<ToolAnswer> {
  const { params = {}, query = {}, body } = parts as Partial<Record<Argument["where"], Arguments>>;
  const placed = { params, query, body: row.body === null ? {} : (body ?? {}) };
  const { dry_run, idempotency_key } = parts;
  const all = { ...params, ...query, ...placed.body, ...given({ dry_run, idempotency_key }) };
  return send(session, row, { input: inputOf(row, { given: all, placed }), wait: false });
}

function given(fields: Arguments): Arguments {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

interface Sending {
  readonly input: AnyInput;
  readonly wait: boolean;
}

async function send(session: Session, row: Row, { input, wait }: Sending): Promise<ToolAnswer> {
  const params = input.params ?? {};
  const isAwaited = wait && input.query?.["dry_run"] !== true && awaitedRows.includes(row.name);
  const end = isAwaited ? await prepareOutcome(session, row, params) : (document: unknown) => document;
  const sending = async () => end(await session.client.send(row, { ...input, signal: session.signal }));
  const outcome = await session.working(row.summary, () => sending().catch((fault) => rethrow(row, fault)));
  const answer = presentAnswer(row, outcome);
  const limit = answer.kept === undefined || !("limit" in row.query.shape) ? undefined : String(answer.kept);
  if (limit === undefined || input.query?.["limit"] === limit) return answer;
  // The response was too long, and its cursor continues after entries that are not shown.
  return send(session, row, { input: { ...input, query: { ...input.query, limit } }, wait });
}

const rightsCodes = ["owner_only", "operator_only", "insufficient_scope"];

/** Throws the fault; if rights are missing, adds those that the row needs. */
function rethrow({ access, scope, further_scopes }: Row, fault: unknown): never {
  if (!(fault instanceof ApiError) || !rightsCodes.includes(fault.code)) throw fault;
  const needs = { role: access === "operator" ? "platform admin" : access, scopes: [scope, ...further_scopes] };
  throw new ApiError(new Response(null, { status: fault.status }), { ...fault.body, needs });
}

const beside = ["action", "wait", "dry_run", "idempotency_key"];

interface Given {
  readonly given: Arguments;
  /** The arguments by part of the request, if the caller separated them: `projects.rename` has a slug in two parts. */
  readonly placed?: Readonly<Record<Argument["where"], Arguments>>;
}

function inputOf(row: Row, { given: spelled, placed }: Given): AnyInput {
  const known = argumentsOf(row);
  const args = Object.fromEntries(Object.entries(spelled).map(([name, value]) => [spellingOf(row, name), value]));
  const isTwice = (name: string) => known.filter((one) => one.name === name).length > 1;
  const valueOf = (one: Argument): unknown =>
    placed?.[one.where][one.name] ?? (isTwice(one.name) ? undefined : args[one.name]);
  const names = known.map(({ name }) => name);
  const unknown = Object.keys(args).find((name) => !names.includes(name) && !beside.includes(name));
  if (unknown !== undefined)
    throw new InvalidCall(
      `${row.name} takes no ${JSON.stringify(unknown.slice(0, 60))}.`,
      `It takes ${names.join(", ") || "nothing"}.`,
    );
  const missing = known.find((one) => one.required && valueOf(one) === undefined);
  if (missing !== undefined)
    throw new InvalidCall(`${row.name} needs ${missing.name}${isTwice(missing.name) ? ` in ${missing.where}` : ""}.`);
  const part = (where: string) =>
    Object.fromEntries(
      known.filter((one) => one.where === where && valueOf(one) !== undefined).map((one) => [one.name, valueOf(one)]),
    );
  const { dry_run, idempotency_key } = args;
  return {
    params: textsOf(part("params")),
    query: { ...queryOf(part("query")), ...(!changes(row) || dry_run !== true ? {} : { dry_run: true }) },
    ...(row.body === null ? {} : { body: part("body") }),
    ...(typeof idempotency_key === "string" ? { idempotencyKey: idempotency_key } : {}),
  };
}

/** A list of texts stays one: the client repeats its parameter. */
function queryOf(fields: Arguments): NonNullable<AnyInput["query"]> {
  const lists = Object.entries(fields).filter((entry): entry is [string, string[]] => isListOfTexts(entry[1]));
  const rest = Object.entries(fields).filter(([, value]) => !isListOfTexts(value));
  return { ...textsOf(Object.fromEntries(rest)), ...Object.fromEntries(lists) };
}

const isListOfTexts = (value: unknown) => Array.isArray(value) && value.every((each) => typeof each === "string");

function textsOf(fields: Arguments): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (!["string", "number", "boolean"].includes(typeof value))
        throw new InvalidCall(`${name} must be a text or a number.`);
      return [name, String(value)];
    }),
  );
}
