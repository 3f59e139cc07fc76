import { getRouteApi } from "@tanstack/react-router";
import { ListFilter } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { requestSorts } from "../../../contract/requests.ts";
import { useCall, useProject, useSlug } from "../../data/api.ts";
import { bytes, count, duration } from "../../data/format.ts";
import { Choice } from "../../ui/choice.tsx";
import { Input, Select } from "../../ui/field.tsx";
import { Page, Empty, View } from "../../ui/page.tsx";
import { Table, type Column } from "../../ui/table.tsx";
import { Ago, Clock, Mono } from "../../ui/text.tsx";
import { HowToDeploy } from "../projects/how-to-deploy.tsx";

type Request = Answer<"requests.list">["requests"][number];
type Paths = Answer<"requests.paths">;
type Path = Paths["paths"][number];

const sortWords = { count: "Most requested", slow: "Slowest", errors: "Most errors" };
const statuses = ["2xx", "3xx", "4xx", "5xx"] as const;
const ranges = ["15m", "1h", "24h", "7d"] as const;

export interface RequestsSearch {
  readonly by?: "path";
  readonly sort?: (typeof requestSorts)[number];
  readonly status?: (typeof statuses)[number];
  readonly slow?: number;
  readonly range?: (typeof ranges)[number];
  readonly q?: string;
}

const route = getRouteApi("/projects/$slug/requests");

export function RequestsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const set = (next: Partial<Record<keyof RequestsSearch, unknown>>) => {
    const all = Object.entries({ ...search, ...next }).filter(([, value]) => value !== undefined);
    void navigate({ search: Object.fromEntries(all) as RequestsSearch, replace: true });
  };
  const { by, status, slow, range = "1h" } = search;
  return (
    <Page
      wide
      title="Requests"
      lead="What the edge answered for this project. Query strings are not kept, because they may hold secrets."
    >
      <div className="flex flex-wrap items-center gap-2">
        <Choice
          label="Shown"
          options={["one", "path"] as const}
          words={{ one: "One by one", path: "By path" }}
          value={by ?? "one"}
          onChange={(next) => set({ by: next === "path" ? "path" : undefined, sort: undefined })}
        />
        <Choice label="Range" options={ranges} value={range} onChange={(next) => set({ range: next })} />
        <Select
          aria-label="Status"
          className="max-w-40"
          value={status ?? ""}
          onChange={({ target }) => set({ status: target.value || undefined })}
        >
          <option value="">Every status</option>
          {statuses.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </Select>
        <Select
          aria-label="Duration"
          className="max-w-44"
          value={slow ?? ""}
          onChange={({ target }) => set({ slow: target.value === "" ? undefined : Number(target.value) })}
        >
          <option value="">Every duration</option>
          {[100, 500, 1000, 5000].map((each) => (
            <option key={each} value={each}>
              At least {duration(each)}
            </option>
          ))}
        </Select>
        <Input
          type="search"
          aria-label="Filter by path"
          placeholder="Filter by path"
          data-search
          className="sm:max-w-64"
          defaultValue={search.q}
          onChange={({ target }) => set({ q: target.value || undefined })}
        />
      </div>
      {by === "path" ? <ByPath search={search} onSort={(sort) => set({ sort })} /> : <OneByOne search={search} />}
    </Page>
  );
}

function queryOf({ status, slow, range = "1h", q }: RequestsSearch) {
  return { since: range, status, slow_ms: slow, ...(q === undefined ? {} : { path: `${q}` }) };
}

const pollMs = 10_000;

function OneByOne({ search }: { readonly search: RequestsSearch }) {
  const slug = useSlug();
  const query = { ...queryOf(search), limit: 500 };
  const requests = useCall("requests.list", { params: { slug }, query }, { pollMs, keep: true });
  return (
    <View of={requests}>
      {({ requests: rows }) =>
        rows.length === 0 ? (
          <NoRequests search={search} />
        ) : (
          <Table
            caption="Requests, newest first"
            rows={rows}
            columns={requestColumns}
            keyOf={(row) => `${row.at} ${row.request_id} ${row.path}`}
            phone={(row) => <OnPhone {...row} />}
            grows
          />
        )
      }
    </View>
  );
}

function NoRequests({ search: { status, slow, q } }: { readonly search: RequestsSearch }) {
  const slug = useSlug();
  const isFiltered = (status ?? slow ?? q) !== undefined;
  const isLive = useProject().data?.active_deployment !== null;
  return (
    <Empty
      icon={<ListFilter size={24} />}
      title={isFiltered ? "No request matches" : isLive ? "No requests in this time" : "No requests yet"}
      action={isLive ? undefined : <HowToDeploy slug={slug} />}
    >
      Requests appear here a few seconds after they were answered. The newest hundred thousand are kept.
    </Empty>
  );
}

const milliseconds = (ms: number) => duration(ms < 10 ? Math.ceil(ms) : ms);
const tone = (status: number) => (status >= 500 ? "text-bad" : status >= 400 ? "text-warn" : "");

const requestColumns: readonly Column<Request>[] = [
  { head: "Time", cell: ({ at }) => <Clock at={at} /> },
  { head: "Status", cell: ({ status }) => <Mono className={tone(status)}>{`${status}`}</Mono> },
  { head: "Method", cell: ({ method }) => <Mono>{method}</Mono> },
  { head: "Path", grow: true, cell: ({ path }) => <Mono className="wrap-anywhere">{path}</Mono> },
  { head: "Duration", end: true, cell: ({ ms }) => milliseconds(ms) },
  { head: "Bytes", end: true, wide: true, cell: ({ bytes: size }) => bytes(size) },
  {
    head: "Replica",
    wide: true,
    cell: ({ deployment, replica }) => (deployment === null ? "–" : `#${deployment}, ${replica}`),
  },
  {
    head: "Request id",
    wide: true,
    cell: ({ request_id: id }) => <Mono className="text-xs wrap-anywhere">{id ?? "–"}</Mono>,
  },
];

function OnPhone({ at, method, path, status, ms }: Request) {
  return (
    <>
      <span className="flex gap-2">
        <Mono className={tone(status)}>{`${status}`}</Mono>
        <Mono className="wrap-anywhere">{`${method} ${path}`}</Mono>
      </span>
      <span className="text-xs text-muted">
        {milliseconds(ms)} · <Clock at={at} />
      </span>
    </>
  );
}

interface ByPathProps {
  readonly search: RequestsSearch;
  readonly onSort: (sort: (typeof requestSorts)[number]) => void;
}

function ByPath({ search, onSort }: ByPathProps) {
  const slug = useSlug();
  const { sort = "count" } = search;
  const query = { ...queryOf(search), sort, limit: 100 };
  const paths = useCall("requests.paths", { params: { slug }, query }, { pollMs, keep: true });
  return (
    <>
      <div>
        <Choice label="Order" options={requestSorts} words={sortWords} value={sort} onChange={onSort} />
      </div>
      <View of={paths}>
        {({ paths: rows, requests, sampled, from }) =>
          rows.length === 0 ? (
            <NoRequests search={search} />
          ) : (
            <>
              <Table
                caption="Paths"
                rows={rows}
                columns={pathColumns}
                keyOf={(row) => `${row.method} ${row.path}`}
                phone={(row) => <PathOnPhone {...row} />}
              />
              <p className="text-xs text-faint">
                {count(requests)} requests
                {from !== null && (
                  <>
                    , the oldest of <Ago at={from} />
                  </>
                )}
                {sampled ? "; of a flood a random part is kept, so counts are estimates." : "."} Numbers and ids in
                paths are shown as <Mono>:id</Mono>.
              </p>
            </>
          )
        }
      </View>
    </>
  );
}

function PathOnPhone({ method, path, count: requests, p95_ms, errors }: Path) {
  return (
    <>
      <Mono className="block wrap-anywhere">{`${method} ${path}`}</Mono>
      <span className="text-xs text-muted">
        {count(requests)} requests · p95 {milliseconds(p95_ms)} ·{" "}
        <span className={errors > 0 ? "text-bad" : ""}>{count(errors)} errors</span>
      </span>
    </>
  );
}

const pathColumns: readonly Column<Path>[] = [
  { head: "Method", cell: ({ method }) => <Mono>{method}</Mono> },
  { head: "Path", grow: true, cell: ({ path }) => <Mono className="wrap-anywhere">{path}</Mono> },
  { head: "Requests", end: true, cell: (row) => count(row.count) },
  { head: "p50", end: true, wide: true, cell: ({ p50_ms: ms }) => milliseconds(ms) },
  { head: "p95", end: true, cell: ({ p95_ms: ms }) => milliseconds(ms) },
  {
    head: "Errors",
    end: true,
    cell: ({ errors }) => <span className={errors > 0 ? "text-bad" : ""}>{count(errors)}</span>,
  },
];
