import { Link } from "@tanstack/react-router";
import { CalendarClock, Play, Plus } from "lucide-react";
import { useState, type ReactNode } from "react";
import { useAction, useSlug, usePages } from "../../data/api.ts";
import { Button, DialogButton } from "../../ui/button.tsx";
import { List, coversItem, type Column } from "../../ui/table.tsx";
import { Page, Empty, Problem } from "../../ui/page.tsx";
import { State, Tag, Ago, Mono } from "../../ui/text.tsx";
import { useRemoval } from "../../ui/action-dialog.tsx";
import { ImportDialog } from "./import-dialog.tsx";
import type { Job } from "./job.ts";
import { deletesRuns, JobDialog } from "./job-dialog.tsx";
import { ScheduleWords } from "./next-runs.tsx";

export function CronPage() {
  const slug = useSlug();
  const jobs = usePages("cron.list", { params: { slug } });
  const run = useAction("cron.run");
  const [edited, setEdited] = useState<Job>();
  const removal = useRemoval({
    row: "cron.delete",
    title: "Delete a job",
    verb: "Delete",
    nameOf: ({ name }: Job) => name,
    input: ({ name }) => ({ params: { slug, name } }),
    warning: deletesRuns,
  });
  const doing = {
    slug,
    onEdit: setEdited,
    removeButton: removal.button,
    onRun: (name: string) => run.mutate({ params: { slug, name } }),
    running: run.isPending ? run.variables.params.name : undefined,
  };
  const actions = (
    <>
      <DialogButton row="cron.set" dialog={(close) => <ImportDialog slug={slug} onClose={close} />}>
        Import
      </DialogButton>
      <DialogButton
        look="primary"
        icon={<Plus size={15} />}
        row="cron.set"
        dialog={(close) => <JobDialog slug={slug} job={null} onClose={close} />}
      >
        New job
      </DialogButton>
    </>
  );
  return (
    <Page
      title="Cron"
      lead="Each job is a GET request to the running application, or a command in its image. Schedules are in UTC."
      actions={actions}
    >
      {run.error !== null && <Problem error={run.error} />}
      <List
        of={jobs}
        caption="Cron jobs"
        rows={({ pages }) => pages.flatMap((page) => page.jobs)}
        keyOf={({ id }) => id}
        columns={columnsFor(doing)}
        phone={(job) => <JobItem job={job} {...doing} />}
        empty={
          <Empty
            icon={<CalendarClock size={24} />}
            title="No jobs yet"
            command={`berth cron set clean-up "0 3 * * *" /jobs/clean-up --project ${slug}`}
          >
            For example a clean-up every night at 03:00 UTC.
          </Empty>
        }
      />
      {edited !== undefined && <JobDialog slug={slug} job={edited} onClose={() => setEdited(undefined)} />}
      {removal.dialog}
    </Page>
  );
}

interface ColumnsOf {
  readonly slug: string;
  readonly onEdit: (job: Job) => void;
  readonly removeButton: (job: Job) => ReactNode;
  readonly onRun: (name: string) => void;
  readonly running: string | undefined;
}

function columnsFor({ slug, running, ...doing }: ColumnsOf): readonly Column<Job>[] {
  return [
    {
      head: "Job",
      grow: true,
      cell: ({ name, path, command, enabled }) => (
        <Link
          to="/projects/$slug/cron/$name"
          params={{ slug, name }}
          className="group flex min-w-0 flex-col leading-4.5"
        >
          <span className="flex items-center gap-2 font-medium group-hover:text-accent">
            {name}
            {!enabled && <Tag>off</Tag>}
          </span>
          <Mono className="truncate text-xs text-faint">{path ?? command ?? ""}</Mono>
        </Link>
      ),
    },
    {
      head: "Schedule",
      wide: true,
      cell: ({ schedule }) => (
        <span className="flex max-w-72 min-w-0 flex-col leading-4.5">
          <Mono>{schedule}</Mono>
          <span className="truncate text-xs text-faint">
            <ScheduleWords schedule={schedule} />
          </span>
        </span>
      ),
    },
    {
      head: "Last run",
      cell: ({ last_status: status, last_run_at: at }) =>
        status === null || at === null ? (
          <span className="text-faint">never</span>
        ) : (
          <span className="inline-flex items-center gap-2">
            <State of={status} />
            <Ago at={at} className="text-muted max-sm:hidden" />
          </span>
        ),
    },
    {
      head: "Next run",
      wide: true,
      cell: ({ next_run_at: at, enabled }) => (
        <span className="text-muted">{enabled && at !== null ? <Ago at={at} /> : "–"}</span>
      ),
    },
    {
      head: "",
      end: true,
      cell: (job) => <JobActions job={job} busy={running === job.name} {...doing} />,
    },
  ];
}

function JobItem({ job, slug, ...doing }: ColumnsOf & { readonly job: Job }) {
  const { name, enabled, schedule, next_run_at: next, last_status: status, last_run_at: last } = job;
  return (
    <div className="flex items-start gap-2">
      <div className="min-w-0 flex-1">
        <p className="flex items-center gap-2">
          <Link
            to="/projects/$slug/cron/$name"
            params={{ slug, name }}
            className={`truncate font-medium ${coversItem}`}
          >
            {name}
          </Link>
          {!enabled && <Tag>off</Tag>}
        </p>
        <p className="text-muted">
          <ScheduleWords schedule={schedule} />
          {enabled && next !== null && (
            <>
              {" · next "}
              <Ago at={next} />
            </>
          )}
        </p>
        <p className="text-faint">
          {status === null || last === null ? (
            "Has not run yet"
          ) : (
            <>
              <State of={status} /> · <Ago at={last} />
            </>
          )}
        </p>
      </div>
      <span className="relative">
        <JobActions job={job} busy={doing.running === name} {...doing} />
      </span>
    </div>
  );
}

interface JobActionsProps extends Omit<ColumnsOf, "slug" | "running"> {
  readonly job: Job;
  readonly busy: boolean;
}

function JobActions({ job, busy, onRun, onEdit, removeButton }: JobActionsProps) {
  return (
    <span className="inline-flex items-center">
      <Button
        look="quiet"
        className="h-7"
        icon={<Play size={13} />}
        row="cron.run"
        busy={busy}
        aria-label={`Run now: ${job.name}`}
        onClick={() => onRun(job.name)}
      >
        <span className="max-sm:hidden">Run now</span>
      </Button>
      <span className="inline-flex max-sm:hidden">
        <Button look="quiet" className="h-7" row="cron.set" onClick={() => onEdit(job)}>
          Edit
        </Button>
        {removeButton(job)}
      </span>
    </span>
  );
}
