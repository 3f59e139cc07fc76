import { getRouteApi } from "@tanstack/react-router";
import { useSlug } from "../../data/project.ts";
import { useLog } from "../../data/use-log.ts";
import { Select } from "../../ui/field.tsx";
import { LogView } from "../../ui/log-view.tsx";
import { Page } from "../../ui/page.tsx";
import { Problem } from "../../ui/problem.tsx";

const route = getRouteApi("/projects/$slug/logs");

export interface LogsSearch {
  readonly source?: "build";
  readonly replica?: number;
  readonly limit?: number;
}

/** What the application prints, as it prints it. */
export function LogsPage() {
  const slug = useSlug();
  const { source = "runtime", replica, limit = 1000 } = route.useSearch();
  const navigate = route.useNavigate();
  const log = useLog({ slug, source, replica: source === "runtime" ? replica : undefined, limit });
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
      {source === "runtime" && (
        <Select
          aria-label="Replica"
          className="max-w-32"
          value={replica ?? ""}
          onChange={(event) => set(event.target.value === "" ? {} : { replica: Number(event.target.value) })}
        >
          <option value="">All replicas</option>
          {Array.from({ length: 8 }, (_, index) => (
            <option key={index} value={index}>
              Replica {index}
            </option>
          ))}
        </Select>
      )}
      <Select
        aria-label="Start with"
        className="max-w-36 max-sm:hidden"
        value={limit}
        onChange={(event) => set({ ...(replica === undefined ? {} : { replica }), limit: Number(event.target.value) })}
      >
        {[200, 1000, 5000].map((count) => (
          <option key={count} value={count}>
            Last {count}
          </option>
        ))}
      </Select>
    </>
  );
  return (
    <Page title="Logs">
      {log.error !== null && <Problem error={log.error} />}
      <LogView
        key={`${source} ${replica}`}
        lines={log.lines}
        label={`Log of ${slug}`}
        fileName={`${slug}-${source}.log`}
        controls={controls}
        height="calc(100dvh - 13rem)"
        empty={
          log.loaded
            ? "Nothing was printed yet. What the application writes to standard output and error appears here."
            : "Loading …"
        }
      />
    </Page>
  );
}
