import { getRouteApi } from "@tanstack/react-router";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { duration, visible } from "../../data/format.ts";
import { Page } from "../../ui/page.tsx";
import { State, Tag } from "../../ui/status.tsx";
import { Table, type Column } from "../../ui/table.tsx";
import { Ago } from "../../ui/text.tsx";
import { Empty, View } from "../../ui/view.tsx";

type Run = Answer<"cron.runs">["runs"][number];

const route = getRouteApi("/projects/$slug/cron/$name");

/** How a job's runs went. */
export function JobPage() {
  const { slug, name } = route.useParams();
  const runs = useCall("cron.runs", { params: { slug, name } });
  return (
    <Page title={`Runs of ${name}`} lead="The newest hundred; the answer's first 4 KiB are kept.">
      <View of={runs}>
        {(data) =>
          data.runs.length === 0 ? (
            <Empty title="It has not run yet" />
          ) : (
            <Table caption="Runs" rows={data.runs} columns={columns} keyOf={({ id }) => id} />
          )
        }
      </View>
    </Page>
  );
}

const columns: readonly Column<Run>[] = [
  { head: "Result", cell: ({ status }) => <State of={status} /> },
  {
    head: "Status",
    cell: ({ http_status: status, reason }) =>
      status ?? (reason === null ? "–" : <span className="text-muted">{reason.replaceAll("_", " ")}</span>),
  },
  {
    head: "Answer",
    grow: true,
    wide: true,
    cell: ({ response_excerpt: text }) =>
      text !== null && (
        <span title={visible(text)} className="font-mono text-xs text-muted">
          {visible(text.slice(0, 200))}
        </span>
      ),
  },
  { head: "By", wide: true, cell: ({ trigger }) => <Tag>{trigger}</Tag> },
  { head: "Took", end: true, cell: ({ duration_ms: ms }) => (ms === null ? "–" : duration(ms)) },
  {
    head: "When",
    end: true,
    cell: ({ scheduled_at: at }) => (
      <span className="text-muted">
        <Ago at={at} />
      </span>
    ),
  },
];
