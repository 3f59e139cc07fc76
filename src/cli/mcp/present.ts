import { ApiError, ConnectionError, InvalidCall } from "../../contract/client.ts";
import type { Row } from "../../contract/table.ts";
import { CliError } from "../failures.ts";
import { fit, lastLines } from "./fit.ts";
import { untrusted, visible, visibleIn, visibleLines } from "./untrusted.ts";

/** What a tool answers; `text` goes to the model. */
export interface ToolAnswer {
  readonly text: string;
  readonly isError: boolean;
}

const cellCharacters = 4000;
const lineCharacters = 2000;

// Rows whose answers hold nothing that an application or a user wrote.
const ownWords: readonly string[] = [
  "self-description.capabilities",
  "database.get",
  "database.create",
  "backups.create",
  "status.get",
];

/** What the platform answered, as text for a model. */
export function presentAnswer(row: Row, document: unknown): ToolAnswer {
  if (document === undefined) return { text: `Done: ${row.summary}.`, isError: false };
  const { text, notes } = (texts[row.name] ?? jsonText)(document);
  const shown = ownWords.includes(row.name) ? text : untrusted(`the platform's answer to ${row.name}`, text);
  return { text: [shown, ...notes].join("\n"), isError: false };
}

/** Why something did not work. What the platform says of it is told as it is: sentence, code, hint, the call to make next. */
export function presentFault(fault: unknown): ToolAnswer {
  return { text: textOfFault(fault), isError: true };
}

function textOfFault(fault: unknown): string {
  if (fault instanceof ApiError) {
    const { status, requestId: request_id, retryAfterSeconds: retry_after_seconds } = fault;
    const told = visibleIn({ ...fault.body, status, request_id, retry_after_seconds }, cellCharacters);
    return [JSON.stringify(told, null, 1), ...whatToDo(fault)].join("\n");
  }
  const own = fault instanceof ConnectionError || fault instanceof CliError ? fault : undefined;
  const known = own ?? (fault instanceof InvalidCall ? fault : undefined);
  const error = known?.message ?? "Something went wrong in the tool itself.";
  return JSON.stringify(
    { error: visible(error), ...(own?.hint === undefined ? {} : { hint: visible(own.hint) }) },
    null,
    1,
  );
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

interface Shown {
  readonly text: string;
  readonly notes: readonly string[];
}

function jsonText(document: unknown): Shown {
  return fit(visibleIn(document, cellCharacters));
}

/** Logs are shorter as lines than as JSON. */
const texts: Readonly<Record<string, (document: unknown) => Shown>> = {
  "logs.list": linesText,
  "builds.logs": buildLogText,
};

interface LogPage {
  readonly lines: readonly { at: string | null; deployment: number | null; replica: number | null; text: string }[];
  readonly next_cursor: string | null;
}

function linesText(document: unknown): Shown {
  const { lines, next_cursor } = document as LogPage;
  const all = lines.map(({ at, deployment, replica, text }) => {
    const origin = [at, deployment === null ? null : `#${deployment}`, replica === null ? null : `replica ${replica}`];
    return [...origin.filter((part) => part !== null), visibleLines(text, lineCharacters)].join(" ");
  });
  const { text, isCut } = lastLines(all.join("\n"));
  const after = next_cursor === null ? [] : [`For what comes after these lines: after=${JSON.stringify(next_cursor)}.`];
  return { text, notes: [...(isCut ? ["Earlier lines were left out: ask for fewer."] : []), ...after] };
}

interface LogPart {
  readonly log: string;
  readonly status: string;
  readonly next_offset: number;
  readonly complete: boolean;
}

function buildLogText(document: unknown): Shown {
  const { log, status, next_offset, complete } = document as LogPart;
  const { text, isCut } = lastLines(visibleLines(log, lineCharacters));
  const more = complete ? "The log is complete." : `There is or will be more from offset=${next_offset} on.`;
  const notes = [`The build is ${status}. ${more}`, ...(isCut ? ["Earlier lines were left out."] : [])];
  return { text, notes };
}
