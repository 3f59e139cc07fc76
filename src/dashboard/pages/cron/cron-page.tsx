import { Link } from "@tanstack/react-router";
import { CalendarClock, Play, Plus } from "lucide-react";
import { useSlug, usePages } from "../../data/api.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { List, coversItem, type Column } from "../../ui/table.tsx";
import { Page, Empty } from "../../ui/page.tsx";
import { State, Tag, Ago, Mono } from "../../ui/text.tsx";
import { ImportDialog } from "./import-dialog.tsx";
import type { Job } from "./job.ts";
import { jobRemoval, runJob } from "./job-removal.ts";
import { JobDialog } from "./job-dialog.tsx";
import { ScheduleWords } from "./next-runs.tsx";

export function CronPage() {
  const slug = useSlug();
  const jobs = usePages("cron.list", { params: { slug } });
  const actions = (
    <>
      <DialogButton row="cron.set" dialog={<ImportDialog slug={slug} />}>
        Import
      </DialogButton>
      <DialogButton
        look="primary"
        icon={<Plus size={15} />}
        row="cron.set"
        dialog={<JobDialog slug={slug} job={null} />}
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
      <List
        of={jobs}
        caption="Cron jobs"
        rows={({ pages }) => pages.flatMap((page) => page.jobs)}
        keyOf={({ id }) => id}
        columns={columnsFor(slug)}
        phone={(job) => <JobItem job={job} slug={slug} />}
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
    </Page>
  );
}

function columnsFor(slug: string): readonly Column<Job>[] {
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
    { head: "", end: true, cell: (job) => <JobActions job={job} slug={slug} /> },
  ];
}

interface OfJob {
  readonly slug: string;
  readonly job: Job;
}

function JobItem({ job, slug }: OfJob) {
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
        <JobActions job={job} slug={slug} />
      </span>
    </div>
  );
}

function JobActions({ job, slug }: OfJob) {
  return (
    <span className="inline-flex items-center">
      <ActionButton look="quiet" icon={<Play size={13} />} aria-label={`Run now: ${job.name}`} {...runJob(slug, job)}>
        <span className="max-sm:hidden">Run now</span>
      </ActionButton>
      <span className="inline-flex max-sm:hidden">
        <DialogButton look="quiet" row="cron.set" dialog={<JobDialog slug={slug} job={job} />}>
          Edit
        </DialogButton>
        {jobRemoval(slug).button(job)}
      </span>
    </span>
  );
}
