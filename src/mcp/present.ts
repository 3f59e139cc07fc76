import { ApiError, ConnectionError, InvalidCall } from "../contract/client.ts";
import type { Row } from "../contract/table.ts";
import type { NextCall } from "../contract/errors.ts";
import { fit, lastLines, type Fitted } from "./fit.ts";
import { summarizeMetrics } from "./metrics-summary.ts";
import { inToolWords, toolCallFor } from "./in-tool-words.ts";
import { untrusted, untrustedNotice, visible, visibleIn, visibleLines } from "./untrusted.ts";

/** A tool's answer; `text` goes to the model, `structured` to programs. */
export interface ToolAnswer {
  readonly text: string;
  readonly structured?: Readonly<Record<string, unknown>>;
  readonly isError: boolean;
  /** How many entries of the row's list were shown, if not all of the response's: ask for that many, so that its cursor continues after them. */
  readonly kept?: number;
}

const cellCharacters = 4000;
const lineCharacters = 2000;

// Rows whose responses contain nothing written by an application or a user, unless they tell of a failure: it quotes the database.
const ownWords: readonly string[] = [
  "self-description.capabilities",
  "database.get",
  "database.create",
  "backups.create",
  "status.get",
];

/** Converts the platform's response to text for a model. */
export function presentAnswer(row: Row, document: unknown): ToolAnswer {
  if (document === undefined) return { text: `Done: ${row.summary}.`, structured: { done: row.name }, isError: false };
  const { text, notes, document: result, kept } = (texts[row.name] ?? jsonText)(withoutLogTails(row, document));
  const isOwn = ownWords.includes(row.name) && ((document as { failure?: unknown }).failure ?? null) === null;
  const shown = isOwn ? text : untrusted(`the platform's answer to ${row.name}`, text);
  const said = [...notes, ...besides(row, document)];
  const structured = { ...(isOwn ? {} : { notice: untrustedNotice }), result: result ?? text, notes: said };
  const answer = { text: [shown, ...said].join("\n"), structured, isError: hasFailed(document) };
  return kept === undefined ? answer : { ...answer, kept };
}

/** Returns where a change goes, and how to try what a plan shows. */
function besides({ name }: Row, document: unknown): readonly string[] {
  const { preview, release_command } = document as Readonly<Record<string, { text?: unknown } | string | null>>;
  if (name === "builds.plan" && typeof release_command === "string") return [howToRehearse];
  const text = typeof preview === "object" ? preview?.text : undefined;
  return typeof text === "string" ? [inToolWords(visible(text))] : [];
}

const howToRehearse =
  'To see what the release command does to a copy of the data, with its locks and rows: deployments_change with {"action":"rehearse","wait":true} and the same files, or `branch`.';

/** Whether the outcome that a call waited for is a failure: of the deployment, its build or the backup. */
function hasFailed(document: unknown): boolean {
  const { build, deployment, status } = document as Readonly<Record<string, { status?: string } | string | null>>;
  const ends = [build, deployment].map((each) => (typeof each === "object" ? each?.status : undefined));
  return (
    ends.some((end) => end === "failed" || end === "cancelled") ||
    (status === "failed" && "operation" in (document as object))
  );
}

/** Leaves the ends of logs out of lists: the failed one has them, too, and 25 rows of them fill a model's context. */
function withoutLogTails({ name }: Row, document: unknown): unknown {
  if (!name.endsWith(".list")) return document;
  const drop = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(drop);
    if (typeof value !== "object" || value === null) return value;
    const fields = Object.entries(value).filter(([field]) => field !== "log_tail");
    return Object.fromEntries(fields.map(([field, inner]) => [field, drop(inner)]));
  };
  return drop(document);
}

/** Converts a failure to text for a model, with all that the platform says: sentence, code, hint, the next call to make. */
export function presentFault(fault: unknown): ToolAnswer {
  const document = documentOf(fault);
  const steps = fault instanceof ApiError ? whatToDo(fault) : [];
  const isForeign = document["foreign"] === true;
  const structured = isForeign ? { notice: untrustedNotice, ...document } : document;
  const json = JSON.stringify(document);
  const text = isForeign ? untrusted("an error that quotes text of others", json) : json;
  return { text: [text, ...steps].join("\n"), structured, isError: true };
}

function documentOf(fault: unknown): Readonly<Record<string, unknown>> {
  if (fault instanceof ApiError) {
    const { status, requestId: request_id, retryAfterSeconds: retry_after_seconds, hint, body } = fault;
    const told = visibleIn({ ...body, status, request_id, retry_after_seconds }, cellCharacters) as object;
    const next = body["next"] as NextCall | undefined;
    return {
      ...told,
      ...(hint === undefined ? {} : { hint: inToolWords(visible(hint)) }),
      ...(next === undefined ? {} : { next_tool: toolCallFor(next) }),
    };
  }
  const known = fault instanceof ConnectionError || fault instanceof InvalidCall ? fault : undefined;
  const error = known?.message ?? "Something went wrong in the tool itself.";
  return { error: visible(error), ...(known?.hint === undefined ? {} : { hint: visible(known.hint) }) };
}

function whatToDo({ code, body }: ApiError): readonly string[] {
  const { id } = (body["approval"] ?? {}) as { id?: unknown };
  if (code !== "approval_required" || typeof id !== "string") return [];
  const poll = JSON.stringify({ action: "get", id, wait: 30 });
  return [
    "A human has to approve this first. Tell the user so: you cannot approve it yourself.",
    `Poll the tool approvals with ${poll} until its status is approved; then repeat this call with exactly the same arguments within an hour.`,
    "If it is denied, do not ask again before ten minutes have passed.",
  ];
}

function jsonText(document: unknown): Fitted {
  const { next_offset, ...rest } = document as { readonly next_offset?: unknown };
  return fit(visibleIn(next_offset === undefined ? document : { ...rest, next_cursor: next_offset }, cellCharacters));
}

/** Logs are shorter as lines than as JSON. */
const texts: Readonly<Record<string, (document: unknown) => Fitted>> = {
  "logs.list": linesText,
  "builds.logs": buildLogText,
  "metrics.get": (document) => fit(visibleIn(summarizeMetrics(document as never), cellCharacters)),
};

interface LogPage {
  readonly lines: readonly { at: string | null; deployment: number | null; replica: number | null; text: string }[];
  readonly next_cursor: string | null;
}

function linesText(document: unknown): Fitted {
  const { lines, next_cursor } = document as LogPage;
  const all = lines.map(({ at, deployment, replica, text }) => {
    const origin = [at, deployment === null ? null : `#${deployment}`, replica === null ? null : `replica ${replica}`];
    return [...origin.filter((part) => part !== null), visibleLines(text, lineCharacters)].join(" ");
  });
  const { text, isCut } = lastLines(all.join("\n"));
  const after =
    next_cursor === null ? [] : [`For what comes after these lines: cursor=${JSON.stringify(next_cursor)}.`];
  const notes = [...(isCut ? ["Earlier lines were left out: ask for fewer."] : []), ...after];
  return { document: { log: text, next_cursor }, text, notes };
}

interface LogPart {
  readonly log: string;
  readonly status: string;
  readonly next_offset: number;
  readonly complete: boolean;
}

function buildLogText(document: unknown): Fitted {
  const { log, status, next_offset, complete } = document as LogPart;
  const { text, isCut } = lastLines(visibleLines(log, lineCharacters));
  const more = complete ? "The log is complete." : `More may follow: cursor=${next_offset}.`;
  const notes = [`The build is ${status}. ${more}`, ...(isCut ? ["Earlier lines were left out."] : [])];
  return { document: { log: text, status, complete, next_cursor: next_offset }, text, notes };
}
