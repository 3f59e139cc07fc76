import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { ApiError, type Answer } from "../../../contract/client.ts";
import { useCall, usePages } from "../../data/api.ts";
import { duration, visible } from "../../data/format.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { NotFound } from "../../frame/not-found.tsx";
import { Button, DialogButton } from "../../ui/button.tsx";
import { useOpenDialog } from "../../ui/dialogs.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Page, Section, Empty, View } from "../../ui/page.tsx";
import { State, States, Tag, Ago, Fact, Mono } from "../../ui/text.tsx";
import type { Job } from "./job.ts";
import { jobRemoval, runJob } from "./job-removal.ts";
import { JobDialog } from "./job-dialog.tsx";
import { NextRuns } from "./next-runs.tsx";

type Run = Answer<"cron.runs">["runs"][number];

const route = getRouteApi("/projects/$slug/cron/$name");

export function JobPage() {
  const { slug, name } = route.useParams();
  const runs = usePages("cron.runs", { params: { slug, name } });
  const jobs = useCall("cron.list", { params: { slug } });
  const openDialog = useOpenDialog();
  const navigate = useNavigate();
  const job = jobs.data?.jobs.find((each) => each.name === name);
  if (runs.data === undefined && runs.error instanceof ApiError && runs.error.status === 404)
    return <NotFound>This project has no cron job {visible(name)}.</NotFound>;
  const actions = (
    <>
      <Button
        look="danger"
        row="cron.delete"
        onClick={() =>
          openDialog(
            jobRemoval(slug).dialog({ name }),
            () => void navigate({ to: "/projects/$slug/cron", params: { slug } }),
          )
        }
      >
        Delete
      </Button>
      <DialogButton row="cron.set" dialog={job && <JobDialog slug={slug} job={job} />}>
        Edit
      </DialogButton>
      <ActionButton look="primary" {...runJob(slug, { name })} />
    </>
  );
  return (
    <Page title={name} actions={actions}>
      <View of={jobs}>{() => job !== undefined && <Facts job={job} runs={runs.data?.pages[0]?.runs} />}</View>
      <Section title="Runs" lead="Newest first; the answer's first 4 KiB are kept.">
        <List
          of={runs}
          caption="Runs"
          rows={({ pages }) => pages.flatMap((page) => page.runs)}
          columns={columns}
          keyOf={({ id }) => id}
          phone={(each) => <RunItem run={each} />}
          empty={<Empty title="It has not run yet" />}
        />
      </Section>
    </Page>
  );
}

const mostDots = 20;

function Facts({ job, runs }: { readonly job: Job; readonly runs: readonly Run[] | undefined }) {
  const { path, command, schedule, enabled, next_run_at: next } = job;
  const newest = (runs ?? []).slice(0, mostDots).map(({ status }) => status);
  return (
    <dl className="grid grid-cols-2 gap-x-6 gap-y-4 rounded-md border border-line p-4 sm:grid-cols-4">
      <Fact label={command === null ? "Path" : "Command"}>
        <Mono className="wrap-anywhere">{command ?? path ?? ""}</Mono>
      </Fact>
      <Fact label="Next run">{enabled && next !== null ? <Ago at={next} /> : "none: the job is off"}</Fact>
      <Fact label="Schedule" wide>
        <Mono>{schedule}</Mono>
        <span className="mt-0.5 block text-xs text-muted">
          <NextRuns schedule={schedule} />
        </span>
      </Fact>
      <Fact label={`Last ${mostDots} runs, newest at the right`} wide>
        {newest.length > 0 ? <States of={newest.toReversed()} /> : runs === undefined ? "…" : "none yet"}
      </Fact>
    </dl>
  );
}

function RunItem({ run }: { readonly run: Run }) {
  return (
    <>
      <span className="flex items-center justify-between gap-3">
        <State of={run.status} />
        <Ago at={run.scheduled_at} className="text-xs text-faint" />
      </span>
      <span className="block text-xs text-muted">
        {answerOf(run)} · {run.trigger} · {tookOf(run)}
      </span>
    </>
  );
}

const answerOf = ({ http_status: status, exit_code: exit, reason }: Run) =>
  status ?? (exit === null ? undefined : `exit code ${exit}`) ?? reason?.replaceAll("_", " ") ?? "–";
const tookOf = ({ duration_ms: ms }: Run) => (ms === null ? "–" : duration(ms));

const columns: readonly Column<Run>[] = [
  { head: "Result", cell: ({ status }) => <State of={status} /> },
  {
    head: "Status",
    cell: (run) => <span className={run.http_status === null ? "text-muted" : ""}>{answerOf(run)}</span>,
  },
  {
    head: "Answer",
    grow: true,
    cell: ({ response_excerpt: text }) =>
      text !== null && (
        <span title={visible(text)} className="font-mono text-xs text-muted">
          {visible(text.slice(0, 200))}
        </span>
      ),
  },
  { head: "By", cell: ({ trigger }) => <Tag>{trigger}</Tag> },
  { head: "Took", end: true, cell: tookOf },
  timeColumn("When", (row) => row.scheduled_at),
];
