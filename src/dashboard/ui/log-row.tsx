import { ListFilter } from "lucide-react";
import { fieldsOf, type LogField } from "../../contract/log-fields.ts";
import type { LogLevel } from "../../contract/log-level.ts";
import { visible } from "../data/format.ts";
import { messageOf } from "../data/message-of.ts";
import { Ansi } from "./ansi.tsx";
import { IconButton, CopyButton } from "./button.tsx";

export interface LogLine {
  readonly at: string | null;
  /** The process type; null in a build's log. */
  readonly process: string | null;
  readonly replica: number | null;
  readonly level?: LogLevel | null;
  readonly text: string;
}

interface LogRowProps {
  readonly line: LogLine;
  /** The line above. On a phone, a build's time stands above the first line of a second only. */
  readonly above: LogLine | undefined;
  readonly wraps: boolean;
  readonly query: string;
  readonly isHit: boolean;
  /** Whether the fields of a JSON line are shown below it. */
  readonly isOpen: boolean;
  /** Shows only the lines with this field, written as `name=value`. */
  readonly onField: ((field: string) => void) | undefined;
}

// The text says it, too: the bar finds it in a page full of lines.
const levelLooks = {
  error: "shadow-[inset_3px_0_var(--bad)]",
  warn: "shadow-[inset_3px_0_var(--warn)]",
  info: "",
  debug: "text-muted",
};
const levelColours = { error: "text-bad", warn: "text-warn", info: "text-busy", debug: "text-muted" };
const replicaColours = ["text-busy", "text-ok", "text-warn", "text-accent", "text-bad"];
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

const nameLength = 9;
// Wrapped text starts below the first character of the text: 8 for the time, 9 for the name, a gap after each. On a phone, time and name
// stand above it, so that the text has the whole width.
const hanging = "sm:pl-[calc(17ch+2.5rem)] sm:indent-[calc(-17ch-1.5rem)]";
const hangingWithoutName = "sm:pl-[calc(8ch+1.75rem)] sm:indent-[calc(-8ch-0.75rem)]";

/** A line of a log, one or more rows high. A line that is a JSON object shows its message, and opens to show its fields. */
export function LogRow({ line, above, wraps, query, isHit, isOpen, onField }: LogRowProps) {
  const { at, process, replica, level, text } = line;
  const isObject = text.startsWith("{") && text.trimEnd().endsWith("}");
  const message = isObject ? messageOf(text) : undefined;
  const isSameTime = wraps && replica === null && above?.at === at;
  return (
    <>
      <div
        ref={isHit ? showHit : undefined}
        aria-current={isHit || undefined}
        className={`px-4 ${wraps ? `wrap-anywhere whitespace-pre-wrap ${at === null ? "" : replica === null ? hangingWithoutName : hanging}` : "h-5 whitespace-pre"} ${level ? levelLooks[level] : ""} ${isHit ? "bg-warn/15" : ""} ${isObject ? "relative cursor-pointer hover:bg-hover" : ""}`}
      >
        {isObject && <button type="button" data-fold aria-expanded={isOpen} aria-label="Fields" className="fold" />}
        {at !== null && (
          <time dateTime={at} className={`mr-3 text-muted select-none ${isSameTime ? "max-sm:hidden" : ""}`}>
            {clock.format(new Date(at))}
          </time>
        )}
        {replica !== null && (
          <span
            title={`${process ?? "web"}, replica ${replica}`}
            className={`mr-3 select-none ${replicaColours[replica % replicaColours.length]}`}
          >
            {nameOf(process ?? "web", replica)}
          </span>
        )}
        {wraps && at !== null && !isSameTime && <br className="sm:hidden" />}
        {message === undefined ? (
          <Ansi text={text === "" ? " " : text} query={query} />
        ) : (
          <>
            {level && <span className={`mr-2 ${levelColours[level]}`}>{level.toUpperCase().padEnd(5)}</span>}
            <span>
              <Ansi text={message.text} query={query} />
            </span>
            {message.rest !== "" && " "}
            {message.rest !== "" && (
              <span className={`text-faint sm:ml-2 ${wraps ? "max-sm:line-clamp-2" : "max-sm:ml-2"}`}>
                <Ansi text={message.rest} query={query} />
              </span>
            )}
          </>
        )}
      </div>
      {isOpen && <Fields text={text} onField={onField} />}
    </>
  );
}

/** Returns a name of fixed length, so that the texts of all lines align. */
function nameOf(process: string, replica: number): string {
  const end = `.${replica}`;
  const begin =
    process.length + end.length > nameLength ? `${process.slice(0, nameLength - end.length - 1)}…` : process;
  return `${begin}${end}`.padEnd(nameLength);
}

/**
 * Scrolls to the row itself, because a block may be higher than the window where long lines wrap; the log alone, so that what stands above
 * it stays in sight.
 */
function showHit(row: HTMLElement | null): void {
  const log = row?.closest("[role=log]");
  if (!row || !log) return;
  const [at, within] = [row.getBoundingClientRect(), log.getBoundingClientRect()];
  const below = Math.min(at.bottom - within.bottom, at.top - within.top);
  log.scrollTop += at.top < within.top ? at.top - within.top : Math.max(0, below);
}

/** The fields of a JSON line. They keep the width of the window where long lines do not wrap. */
function Fields({ text, onField }: { readonly text: string; readonly onField: LogRowProps["onField"] }) {
  const fields = fieldsOf(text) ?? [];
  return (
    <div data-fields className="sticky left-0 w-[100cqw] bg-panel py-1.5 pr-2 pl-4 sm:pl-8">
      <dl className="flex flex-col">
        {fields.map((field) => (
          <FieldRow key={field.name} field={field} onField={onField} />
        ))}
      </dl>
      <div className="flex items-center gap-1 sm:[&_button]:size-6 font-sans text-xs text-muted">
        {fields.length === 0 ? "An object without fields" : "The line as it was printed"}
        <CopyButton text={text} label="Copy the line" />
      </div>
    </div>
  );
}

// A longer one would not fit into an address.
const longestFilter = 500;

function FieldRow({ field: { name, value }, onField }: { readonly field: LogField } & Pick<LogRowProps, "onField">) {
  const field = `${name}=${value}`;
  return (
    <div className="flex min-w-0 items-start gap-x-3 max-sm:flex-wrap">
      <dt className="text-muted wrap-anywhere sm:w-44 sm:shrink-0 sm:py-0.5">{visible(name)}</dt>
      <dd className="flex min-w-0 flex-1 items-start gap-1 max-sm:basis-full">
        <span className="min-w-0 wrap-anywhere whitespace-pre-wrap sm:py-0.5">{visible(value)}</span>
        <span className="flex shrink-0 sm:[&_button]:size-6">
          {onField !== undefined && field.length <= longestFilter && (
            <IconButton label={`Only lines with ${field}`} onClick={() => onField(field)}>
              <ListFilter size={13} />
            </IconButton>
          )}
          <CopyButton text={value} label={`Copy ${name}`} />
        </span>
      </dd>
    </div>
  );
}
