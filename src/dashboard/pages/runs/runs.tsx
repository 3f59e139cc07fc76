import { Link } from "@tanstack/react-router";
import { SquareTerminal } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { duration } from "../../data/format.ts";
import { useProject, usePages } from "../../data/api.ts";
import { DialogButton } from "../../ui/button.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Section, Empty } from "../../ui/page.tsx";
import { State, Ago, Mono, Plain, useNow } from "../../ui/text.tsx";
import { StartRun } from "./start-run.tsx";

export type Run = Answer<"runs.list">["runs"][number];

/** Lists one-off commands, newest first, and starts another. */
export function Runs({ slug }: { readonly slug: string }) {
  const runs = usePages("runs.list", { params: { slug } });
  const { data: project } = useProject();
  const isDeployed = project?.active_deployment !== null;
  const why = isDeployed ? undefined : "Deploy a version first.";
  return (
    <Section
      title="One-off commands"
      lead="Run in the image of a deployment with its variables, database and storage: a migration, an import, a look around."
      actions={
        <DialogButton
          look="primary"
          icon={<SquareTerminal size={15} />}
          row="runs.create"
          why={why}
          dialog={<StartRun slug={slug} />}
        >
          Run a command
        </DialogButton>
      }
    >
      <List
        of={runs}
        caption="One-off commands"
        grows
        rows={({ pages }) => pages.flatMap((page) => page.runs)}
        columns={columnsFor(slug)}
        keyOf={({ number }) => `${number}`}
        empty={
          <Empty
            icon={<SquareTerminal size={24} />}
            title="No command ran yet"
            {...(isDeployed ? { command: `berth run --project ${slug} -- node --version` } : {})}
          >
            {isDeployed
              ? "A migration, an import, a look around. Output and exit code are kept."
              : "Commands run in the image of a deployment; there is none yet."}
          </Empty>
        }
      />
    </Section>
  );
}

function columnsFor(slug: string): readonly Column<Run>[] {
  return [
    { head: "State", cell: ({ status }) => <State of={status} /> },
    {
      head: "Command",
      grow: true,
      cell: ({ number, command, requested_by: by, created_at: at }) => (
        <Link
          to="/projects/$slug/runs/$number"
          params={{ slug, number: `${number}` }}
          className="group flex min-w-0 flex-col leading-4.5"
        >
          <Mono className="truncate font-medium group-hover:text-accent">{command}</Mono>
          <span className="truncate text-xs text-faint">
            {number} ·{" "}
            <span className="sm:hidden">
              <Ago at={at} /> ·{" "}
            </span>
            by <Plain>{by}</Plain>
          </span>
        </Link>
      ),
    },
    { head: "Deployment", wide: true, end: true, cell: ({ deployment }) => `#${deployment}` },
    { head: "Exit code", end: true, cell: (run) => <ExitCode run={run} /> },
    {
      head: "Took",
      wide: true,
      end: true,
      cell: (run) => (
        <span className="text-muted">
          <RunTime run={run} />
        </span>
      ),
    },
    timeColumn("When", (row) => row.created_at),
  ];
}

/** Shows the exit code; a dash while the command runs, or if the platform ended it. */
export function ExitCode({ run: { exit_code: code } }: { readonly run: Run }) {
  if (code === null) return <span className="text-faint">–</span>;
  return <span className={code === 0 ? "" : "font-medium text-bad"}>{code}</span>;
}

/** Shows the time from the start to the end, or until now. */
export function RunTime({ run: { started_at: start, finished_at: end } }: { readonly run: Run }) {
  const now = useNow();
  if (start === null) return <>–</>;
  return <>{duration(Math.max(0, (end === null ? now : Date.parse(end)) - Date.parse(start)))}</>;
}
