import { getRouteApi } from "@tanstack/react-router";
import { ArrowUp } from "lucide-react";
import type { ReactNode } from "react";
import type { LogLevel } from "../../../contract/log-level.ts";
import { limits } from "../../../contract/limits.ts";
import { useCall } from "../../data/api.ts";
import { useProject, useSlug, type Project } from "../../data/project.ts";
import { useLog } from "../../data/use-log.ts";
import { Button } from "../../ui/button.tsx";
import { Select } from "../../ui/field.tsx";
import { LogView } from "../../ui/log-view.tsx";
import { Page } from "../../ui/page.tsx";
import { Problem } from "../../ui/problem.tsx";
import { HowToDeploy } from "../projects/how-to-deploy.tsx";
import { TimeRangeControl, type TimeRange } from "./time-range.tsx";

const route = getRouteApi("/projects/$slug/logs");
const none = { process: undefined, replica: undefined, since: undefined, until: undefined };

export interface LogsSearch extends TimeRange, Origin {
  readonly source?: "build";
  readonly q?: string;
  readonly level?: LogLevel;
}

/** The page of the application's output, live. */
export function LogsPage() {
  const slug = useSlug();
  const { data: project } = useProject();
  const { q = "", ...search } = route.useSearch();
  const { source = "runtime", process, replica, since, until, level } = search;
  const range = { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
  const origin = { ...(process === undefined ? {} : { process }), ...(replica === undefined ? {} : { replica }) };
  const named = level === undefined ? {} : { level };
  const navigate = route.useNavigate();
  const isRuntime = source === "runtime";
  // For a range, as many lines as one response may hold.
  const limit = since === undefined ? 1000 : limits.log_lines;
  const log = useLog({ slug, source, limit, level, ...(isRuntime ? { process, replica, since, until } : none) });
  const withText = (text: string, others: LogsSearch) =>
    void navigate({ search: { ...others, ...(text === "" ? {} : { q: text }) }, replace: true });
  const set = (next: LogsSearch) => withText(q, { ...(source === "build" ? { source } : {}), ...named, ...next });
  const setLevel = (next: LogLevel | "") => {
    const { level: _, ...others } = search;
    withText(q, next === "" ? others : { ...others, level: next });
  };
  const controls = (
    <>
      <Select
        aria-label="Source"
        className="max-w-36"
        value={source}
        onChange={(event) => withText(q, { ...(event.target.value === "build" ? { source: "build" } : {}), ...named })}
      >
        <option value="runtime">Application</option>
        <option value="build">Last build</option>
      </Select>
      {isRuntime && <OriginSelect slug={slug} origin={origin} onOrigin={(next) => set({ ...range, ...next })} />}
      <Select
        aria-label="Level"
        className="max-w-40"
        value={level ?? ""}
        onChange={(event) => setLevel(event.target.value as LogLevel | "")}
      >
        <option value="">All levels</option>
        <option value="error">Errors</option>
        <option value="warn">Warnings and worse</option>
        <option value="info">Info and worse</option>
        <option value="debug">All with a level</option>
      </Select>
      {isRuntime && <TimeRangeControl range={range} onRange={(next) => set({ ...origin, ...next })} />}
    </>
  );
  return (
    <Page wide title="Logs">
      {log.error !== null && <Problem error={log.error} />}
      <LogView
        of={`${slug} ${source} ${process} ${replica} ${since} ${until} ${level}`}
        searched={`${q}`}
        onSearch={(text) => withText(text, search)}
        lines={log.lines}
        first={log.first}
        older={
          log.loadOlder !== undefined && (
            <Button
              className="shadow-float"
              icon={<ArrowUp size={14} />}
              busy={log.isLoadingOlder}
              onClick={log.loadOlder}
            >
              Show older lines
            </Button>
          )
        }
        label={`Log of ${slug}`}
        fileName={`${slug}-${source}.log`}
        controls={controls}
        height="calc(100dvh - 13rem)"
        empty={
          log.loaded && project !== undefined ? (
            <EmptyLog
              project={project}
              isBuild={!isRuntime}
              isFiltered={process !== undefined || replica !== undefined}
              onAllLevels={level === undefined ? undefined : () => setLevel("")}
              isRange={since !== undefined || until !== undefined}
              onShowAll={() => set(process === undefined && replica === undefined ? {} : range)}
            />
          ) : (
            "Loading …"
          )
        }
      />
    </Page>
  );
}

interface EmptyLogProps {
  readonly project: Project;
  readonly isBuild: boolean;
  /** Whether only one process or replica is shown. */
  readonly isFiltered: boolean;
  readonly isRange: boolean;
  readonly onShowAll: () => void;
  /** Undefined if lines of all levels are shown. */
  readonly onAllLevels: (() => void) | undefined;
}

/** Says why a log has no lines, and what to do next. */
function EmptyLog({ project, isBuild, isFiltered, isRange, onShowAll, onAllLevels }: EmptyLogProps) {
  if (onAllLevels !== undefined)
    return (
      <Reason text="No line names this level or a worse one.">
        <Button onClick={onAllLevels}>Show all levels</Button>
      </Reason>
    );
  if (isBuild) return <Reason text="There is no build log yet. The next push writes one." />;
  if (isFiltered || isRange)
    return (
      <Reason text={isRange ? "Nothing was printed in this time." : "This process or replica printed nothing."}>
        <Button onClick={onShowAll}>{isFiltered ? "Show all processes" : "Show the newest lines"}</Button>
      </Reason>
    );
  if (project.active_deployment === null)
    return (
      <Reason text="No deployment is live, so nothing is printed.">
        <HowToDeploy slug={project.slug} />
      </Reason>
    );
  return (
    <Reason
      text={`Deployment #${project.active_deployment.number} has printed nothing. What it writes to standard output and error appears here at once.`}
    />
  );
}

function Reason({ text, children }: { readonly text: string; readonly children?: ReactNode }) {
  return (
    <div className="flex flex-col items-start gap-3">
      <p className="max-w-[64ch]">{text}</p>
      {children}
    </div>
  );
}

/** The process whose lines a log shows; all processes if it is empty. */
interface Origin {
  readonly process?: string;
  readonly replica?: number;
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
