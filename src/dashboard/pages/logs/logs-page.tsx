import { getRouteApi } from "@tanstack/react-router";
import { ArrowUp } from "lucide-react";
import type { ReactNode } from "react";
import { limits } from "../../../contract/limits.ts";
import { useProject, useSlug, type Project } from "../../data/api.ts";
import { useLog } from "../../data/use-log.ts";
import { Button } from "../../ui/button.tsx";
import { LogView } from "../../ui/log-view.tsx";
import { Page, Problem } from "../../ui/page.tsx";
import { HowToDeploy } from "../projects/how-to-deploy.tsx";
import { Histogram } from "./histogram.tsx";
import { LogFilterControls, fieldsIn, withField, withLevel, withoutField, type LogFilters } from "./log-filters.tsx";

const route = getRouteApi("/projects/$slug/logs");
const none = { process: undefined, replica: undefined, since: undefined, until: undefined };

export interface LogsSearch extends LogFilters {
  readonly q?: string;
}

export function LogsPage() {
  const slug = useSlug();
  const { data: project } = useProject();
  const { q = "", ...filters } = route.useSearch();
  const { source = "runtime", process, replica, since, until, level } = filters;
  const fields = fieldsIn(filters);
  const field = fields.length === 0 ? undefined : fields;
  const navigate = route.useNavigate();
  const isRuntime = source === "runtime";
  // For a range, as many lines as one response may hold.
  const limit = since === undefined ? 1000 : limits.log_lines;
  const log = useLog({ slug, source, limit, level, field, ...(isRuntime ? { process, replica, since, until } : none) });
  const show = (text: string, next: LogFilters, replace: boolean) =>
    void navigate({ search: { ...next, ...(text === "" ? {} : { q: text }) }, replace });
  const set = (next: LogFilters) => show(q, next, true);
  const { since: _, until: _until, ...ofAnyTime } = filters;
  return (
    <Page wide title="Logs">
      {log.error !== null && <Problem error={log.error} />}
      <LogView
        of={`${slug} ${source} ${process} ${replica} ${since} ${until} ${level} ${fields.join(" ")}`}
        searched={`${q}`}
        onSearch={(text) => show(text, filters, true)}
        onField={(next) => show(q, withField(filters, next), false)}
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
        controls={<LogFilterControls slug={slug} filters={filters} onFilters={set} />}
        above={
          isRuntime && (
            <Histogram
              slug={slug}
              filters={{ process, replica, level, field }}
              range={{ since, until }}
              oldest={log.lines[0]?.at ?? undefined}
              onRange={(range) => show(q, { ...ofAnyTime, ...range }, false)}
            />
          )
        }
        height="calc(100dvh - 6rem - var(--header))"
        empty={
          log.loaded && project !== undefined ? (
            <EmptyLog project={project} filters={filters} onFilters={set} />
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
  readonly filters: LogFilters;
  readonly onFilters: (filters: LogFilters) => void;
}

/** Says why a log has no lines, and what to do next. */
function EmptyLog({ project, filters, onFilters }: EmptyLogProps) {
  const { source, process, replica, since, until, level, field: _, ...none } = filters;
  const isRange = since !== undefined || until !== undefined;
  const isOfOne = process !== undefined || replica !== undefined;
  const { length: fields } = fieldsIn(filters);
  if (fields > 0)
    return (
      <Reason
        text={fields === 1 ? "No line has this field with this value." : "No line has all of these fields at once."}
      >
        <Button onClick={() => onFilters(withoutField(filters))}>
          Show lines without {fields === 1 ? "it" : "them"} too
        </Button>
      </Reason>
    );
  if (level !== undefined)
    return (
      <Reason text="No line names this level or a worse one.">
        <Button onClick={() => onFilters(withLevel(filters, ""))}>Show all levels</Button>
      </Reason>
    );
  if (source === "build") return <Reason text="There is no build log yet. The next push writes one." />;
  if (isOfOne || isRange)
    return (
      <Reason text={isRange ? "Nothing was printed in this time." : "This process or replica printed nothing."}>
        <Button onClick={() => onFilters(isOfOne && isRange ? rangeOf(filters) : none)}>
          {isOfOne ? "Show all processes" : "Show the newest lines"}
        </Button>
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

function rangeOf({ since, until }: LogFilters): LogFilters {
  return { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
}
