import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { ApiError, type Answer } from "../../../contract/client.ts";
import { useAction, useCall, usePages } from "../../data/api.ts";
import { duration, visible } from "../../data/format.ts";
import { ConfirmAction } from "../../ui/action-dialog.tsx";
import { NotFound } from "../../frame/not-found.tsx";
import { Button, DialogButton } from "../../ui/button.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Page, Section, Empty, View, Problem } from "../../ui/page.tsx";
import { State, States, Tag, Ago, Fact, Mono } from "../../ui/text.tsx";
import type { Job } from "./job.ts";
import { deletesRuns, JobDialog } from "./job-dialog.tsx";
import { NextRuns } from "./next-runs.tsx";

type Run = Answer<"cron.runs">["runs"][number];

const route = getRouteApi("/projects/$slug/cron/$name");

export function JobPage() {
  const { slug, name } = route.useParams();
  const runs = usePages("cron.runs", { params: { slug, name } });
  const jobs = useCall("cron.list", { params: { slug } });
  const run = useAction("cron.run");
  const navigate = useNavigate();
  const job = jobs.data?.jobs.find((each) => each.name === name);
  if (runs.data === undefined && runs.error instanceof ApiError && runs.error.status === 404)
    return <NotFound>This project has no cron job {visible(name)}.</NotFound>;
  const actions = (
    <>
      <DialogButton
        look="danger"
        row="cron.delete"
        dialog={(close) => (
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
      >
        Delete
      </DialogButton>
      <DialogButton row="cron.set" dialog={(close) => job && <JobDialog slug={slug} job={job} onClose={close} />}>
        Edit
      </DialogButton>
      <Button look="primary" row="cron.run" busy={run.isPending} onClick={() => run.mutate({ params: { slug, name } })}>
        Run now
      </Button>
    </>
  );
  return (
    <Page title={name} actions={actions}>
      {run.error !== null && <Problem error={run.error} />}
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
