import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useAction, useCall } from "../../data/api.ts";
import { duration, visible } from "../../data/format.ts";
import { useWhyNot } from "../../data/me.ts";
import { ConfirmAction } from "../../ui/action-dialog.tsx";
import { Button } from "../../ui/button.tsx";
import { Page } from "../../ui/page.tsx";
import { Problem } from "../../ui/problem.tsx";
import { State, Tag } from "../../ui/status.tsx";
import { Table, timeColumn, type Column } from "../../ui/table.tsx";
import { Empty, View } from "../../ui/view.tsx";
import { deletesRuns, JobDialog } from "./job-dialog.tsx";

type Run = Answer<"cron.runs">["runs"][number];

const route = getRouteApi("/projects/$slug/cron/$name");

/** How a job's runs went. */
export function JobPage() {
  const { slug, name } = route.useParams();
  const runs = useCall("cron.runs", { params: { slug, name } });
  const jobs = useCall("cron.list", { params: { slug } });
  const run = useAction("cron.run");
  const [open, setOpen] = useState<"edit" | "delete">();
  const why = useWhyNot("cron.set");
  const navigate = useNavigate();
  const close = () => setOpen(undefined);
  const job = jobs.data?.jobs.find((each) => each.name === name);
  const actions = (
    <>
      <Button look="danger" why={why} onClick={() => setOpen("delete")}>
        Delete
      </Button>
      <Button why={why} onClick={() => setOpen("edit")}>
        Edit
      </Button>
      <Button look="primary" why={why} busy={run.isPending} onClick={() => run.mutate({ params: { slug, name } })}>
        Run now
      </Button>
    </>
  );
  return (
    <Page title={`Runs of ${name}`} lead="The newest hundred; the answer's first 4 KiB are kept." actions={actions}>
      {run.error !== null && <Problem error={run.error} />}
      <View of={runs}>
        {(data) =>
          data.runs.length === 0 ? (
            <Empty title="It has not run yet" />
          ) : (
            <Table caption="Runs" rows={data.runs} columns={columns} keyOf={({ id }) => id} />
          )
        }
      </View>
      {open === "edit" && job !== undefined && <JobDialog slug={slug} job={job} onClose={close} />}
      {open === "delete" && (
        <ConfirmAction
          row="cron.delete"
          title="Delete a job"
          submit="Delete"
          typed={name}
          input={{ params: { slug, name } }}
          onDone={() => void navigate({ to: "/projects/$slug/cron", params: { slug } })}
          onClose={close}
        >
          {deletesRuns}
        </ConfirmAction>
      )}
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
  timeColumn("When", (row) => row.scheduled_at, { wide: false }),
];
