import { getRouteApi } from "@tanstack/react-router";
import { ArrowUp } from "lucide-react";
import { limits } from "../../../contract/limits.ts";
import { useProject, useSlug } from "../../data/project.ts";
import { useLog } from "../../data/use-log.ts";
import { Button } from "../../ui/button.tsx";
import { Select } from "../../ui/field.tsx";
import { LogView } from "../../ui/log-view.tsx";
import { Page } from "../../ui/page.tsx";
import { Problem } from "../../ui/problem.tsx";
import { EmptyLog } from "./empty-log.tsx";
import { OriginSelect, type Origin } from "./origin-select.tsx";
import { TimeRangeControl, type TimeRange } from "./time-range.tsx";

const route = getRouteApi("/projects/$slug/logs");
const none = { process: undefined, replica: undefined, since: undefined, until: undefined };

export interface LogsSearch extends TimeRange, Origin {
  readonly source?: "build";
  readonly q?: string;
}

/** The page of the application's output, live. */
export function LogsPage() {
  const slug = useSlug();
  const { data: project } = useProject();
  const { q = "", ...search } = route.useSearch();
  const { source = "runtime", process, replica, since, until } = search;
  const range = { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
  const origin = { ...(process === undefined ? {} : { process }), ...(replica === undefined ? {} : { replica }) };
  const navigate = route.useNavigate();
  const isRuntime = source === "runtime";
  // For a range, as many lines as one response may hold.
  const limit = since === undefined ? 1000 : limits.log_lines;
  const log = useLog({ slug, source, limit, ...(isRuntime ? { process, replica, since, until } : none) });
  const withText = (text: string, others: LogsSearch) =>
    void navigate({ search: { ...others, ...(text === "" ? {} : { q: text }) }, replace: true });
  const set = (next: LogsSearch) => withText(q, { ...(source === "build" ? { source } : {}), ...next });
  const controls = (
    <>
      <Select
        aria-label="Source"
        className="max-w-36"
        value={source}
        onChange={(event) => withText(q, event.target.value === "build" ? { source: "build" } : {})}
      >
        <option value="runtime">Application</option>
        <option value="build">Last build</option>
      </Select>
      {isRuntime && <OriginSelect slug={slug} origin={origin} onOrigin={(next) => set({ ...range, ...next })} />}
      {isRuntime && <TimeRangeControl range={range} onRange={(next) => set({ ...origin, ...next })} />}
    </>
  );
  return (
    <Page wide title="Logs">
      {log.error !== null && <Problem error={log.error} />}
      <LogView
        of={`${slug} ${source} ${process} ${replica} ${since} ${until}`}
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
