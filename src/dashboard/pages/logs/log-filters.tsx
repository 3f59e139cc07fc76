import { X } from "lucide-react";
import type { LogLevel } from "../../../contract/log-level.ts";
import { useCall } from "../../data/api.ts";
import { visible } from "../../data/format.ts";
import { Select } from "../../ui/field.tsx";
import { IconButton } from "../../ui/button.tsx";
import { TimeRangeControl, type TimeRange } from "./time-range.tsx";

/** The process whose lines a log shows; all processes if it is empty. */
export interface Origin {
  readonly process?: string;
  readonly replica?: number;
}

export interface LogFilters extends TimeRange, Origin {
  readonly source?: "build";
  readonly level?: LogLevel;
  /** A field of JSON lines, written as `name=value`, or several. */
  readonly field?: string | readonly string[];
}

interface LogFilterControlsProps {
  readonly slug: string;
  readonly filters: LogFilters;
  readonly onFilters: (filters: LogFilters) => void;
}

export function LogFilterControls({ slug, filters, onFilters }: LogFilterControlsProps) {
  const { source = "runtime", process, replica, since, until, level, field, ...none } = filters;
  const isRuntime = source === "runtime";
  const range = { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
  const origin = { ...(process === undefined ? {} : { process }), ...(replica === undefined ? {} : { replica }) };
  const of = isRuntime ? none : { ...none, source };
  const kept = { ...of, ...(level === undefined ? {} : { level }), ...(field === undefined ? {} : { field }) };
  const setSource = (next: string) => {
    const { source: _, ...others } = kept as LogFilters;
    onFilters(next === "build" ? { ...others, source: "build" } : others);
  };
  return (
    <>
      <Select
        aria-label="Source"
        className="max-w-36"
        value={source}
        onChange={({ target }) => setSource(target.value)}
      >
        <option value="runtime">Application</option>
        <option value="build">Last build</option>
      </Select>
      {isRuntime && (
        <OriginSelect slug={slug} origin={origin} onOrigin={(next) => onFilters({ ...kept, ...range, ...next })} />
      )}
      <Select
        aria-label="Level"
        className="max-w-40"
        value={level ?? ""}
        onChange={({ target }) => onFilters(withLevel(filters, target.value as LogLevel | ""))}
      >
        <option value="">All levels</option>
        <option value="error">Errors</option>
        <option value="warn">Warnings and worse</option>
        <option value="info">Info and worse</option>
        <option value="debug">All with a level</option>
      </Select>
      {isRuntime && <TimeRangeControl range={range} onRange={(next) => onFilters({ ...kept, ...origin, ...next })} />}
      {fieldsIn(filters).map((each) => (
        <span
          key={each}
          className="flex min-w-0 items-center rounded-md border border-accent/50 bg-bg pl-2.5 font-mono text-xs"
        >
          <span className="max-w-64 truncate" title={visible(each)}>
            {visible(each)}
          </span>
          <IconButton label={`Show lines without ${each} too`} onClick={() => onFilters(withoutField(filters, each))}>
            <X size={14} />
          </IconButton>
        </span>
      ))}
    </>
  );
}

export function withLevel(filters: LogFilters, level: LogLevel | ""): LogFilters {
  const { level: _, ...others } = filters;
  return level === "" ? others : { ...others, level };
}

/** The chosen fields. The router reads a bare number or word of JSON in an address as such. */
export function fieldsIn({ field }: LogFilters): readonly string[] {
  return field === undefined ? [] : [field].flat().map((each) => `${each}`);
}

export function withField(filters: LogFilters, field: string): LogFilters {
  return withFields(filters, [...fieldsIn(filters).filter((each) => each !== field), field]);
}

/** Leaves one field out, or all of them. */
export function withoutField(filters: LogFilters, field?: string): LogFilters {
  return withFields(filters, field === undefined ? [] : fieldsIn(filters).filter((each) => each !== field));
}

function withFields(filters: LogFilters, fields: readonly string[]): LogFilters {
  const { field: _, ...others } = filters;
  const [first] = fields;
  return first === undefined ? others : { ...others, field: fields.length === 1 ? first : fields };
}

interface OriginSelectProps {
  readonly slug: string;
  readonly origin: Origin;
  readonly onOrigin: (origin: Origin) => void;
}

/** A choice of process types, and of each replica of types that have several. */
function OriginSelect({ slug, origin, onOrigin }: OriginSelectProps) {
  const { data } = useCall("processes.list", { params: { slug } });
  const known = (data?.processes ?? []).flatMap(({ type, replicas }) => [
    { process: type },
    ...(replicas < 2 ? [] : Array.from({ length: replicas }, (_, replica) => ({ process: type, replica }))),
  ]);
  const present = nameOf(origin);
  // The address may name a process that no longer runs.
  const all = present === "" || known.some((each) => nameOf(each) === present) ? known : [origin, ...known];
  return (
    <Select
      aria-label="Process"
      className="max-w-36"
      value={present}
      onChange={(event) => onOrigin(all.find((each) => nameOf(each) === event.target.value) ?? {})}
    >
      <option value="">All processes</option>
      {all.map((each) => (
        <option key={nameOf(each)} value={nameOf(each)}>
          {nameOf(each)}
        </option>
      ))}
    </Select>
  );
}

function nameOf({ process, replica }: Origin): string {
  if (process === undefined && replica === undefined) return "";
  return replica === undefined ? (process ?? "") : `${process ?? "any"}.${replica}`;
}
