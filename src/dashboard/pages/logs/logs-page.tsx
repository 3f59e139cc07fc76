import { getRouteApi } from "@tanstack/react-router";
import { limits } from "../../../contract/limits.ts";
import { useSlug } from "../../data/project.ts";
import { useLog } from "../../data/use-log.ts";
import { Select } from "../../ui/field.tsx";
import { LogView } from "../../ui/log-view.tsx";
import { Page } from "../../ui/page.tsx";
import { Problem } from "../../ui/problem.tsx";
import { TimeRangeControl, type TimeRange } from "./time-range.tsx";

const route = getRouteApi("/projects/$slug/logs");
const none = { replica: undefined, since: undefined, until: undefined };

export interface LogsSearch extends TimeRange {
  readonly source?: "build";
  readonly replica?: number;
}

/** What the application prints, as it prints it. */
export function LogsPage() {
  const slug = useSlug();
  const { source = "runtime", replica, since, until } = route.useSearch();
  const range = { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
  const navigate = route.useNavigate();
  const isRuntime = source === "runtime";
  // Of a range as many as one answer may hold.
  const limit = since === undefined ? 1000 : limits.log_lines;
  const log = useLog({ slug, source, limit, ...(isRuntime ? { replica, since, until } : none) });
  const set = (search: LogsSearch) =>
    void navigate({ search: { ...(source === "build" ? { source } : {}), ...search }, replace: true });
  const controls = (
    <>
      <Select
        aria-label="Source"
        className="max-w-36"
        value={source}
        onChange={(event) => set(event.target.value === "build" ? { source: "build" } : {})}
      >
        <option value="runtime">Application</option>
        <option value="build">Last build</option>
      </Select>
      {isRuntime && (
        <Select
          aria-label="Replica"
          className="max-w-32"
          value={replica ?? ""}
          onChange={(event) =>
            set(event.target.value === "" ? range : { ...range, replica: Number(event.target.value) })
          }
        >
          <option value="">All replicas</option>
          {Array.from({ length: 8 }, (_, index) => (
            <option key={index} value={index}>
              Replica {index}
            </option>
          ))}
        </Select>
      )}
      {isRuntime && (
        <TimeRangeControl
          range={range}
          onRange={(next) => set({ ...(replica === undefined ? {} : { replica }), ...next })}
        />
      )}
    </>
  );
  return (
    <Page title="Logs">
      {log.error !== null && <Problem error={log.error} />}
      <LogView
        key={`${source} ${replica} ${since} ${until}`}
        lines={log.lines}
        label={`Log of ${slug}`}
        fileName={`${slug}-${source}.log`}
        controls={controls}
        height="calc(100dvh - 13rem)"
        empty={
          log.loaded
            ? since === undefined
              ? "Nothing was printed yet. What the application writes to standard output and error appears here."
              : "Nothing was printed in this time."
            : "Loading …"
        }
      />
    </Page>
  );
}
