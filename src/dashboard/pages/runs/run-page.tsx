import { getRouteApi } from "@tanstack/react-router";
import { Ban } from "lucide-react";
import { useMemo } from "react";
import { duration } from "../../data/format.ts";
import { useRunOutput } from "../../data/use-output.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { Command } from "../../ui/button.tsx";
import { linesOf, LogView } from "../../ui/log-view.tsx";
import { Page, Loading, Problem } from "../../ui/page.tsx";
import { State, Ago, Fact, Plain } from "../../ui/text.tsx";
import { ExitCode, RunTime, type Run } from "./runs.tsx";

const route = getRouteApi("/projects/$slug/runs/$number");

export function RunPage() {
  const { slug, number } = route.useParams();
  const { text, complete, error, subject: run } = useRunOutput(slug, number);
  const lines = useMemo(() => linesOf(text), [text]);
  const isOver = run !== undefined && run.finished_at !== null;
  return (
    <Page
      title={`Command ${number}`}
      actions={
        run !== undefined &&
        !isOver && (
          <ActionButton
            icon={<Ban size={14} />}
            row="runs.cancel"
            label="Cancel"
            input={{ params: { slug, number } }}
          />
        )
      }
    >
      {error !== null && <Problem error={error} />}
      {run === undefined ? (
        error === null && <Loading />
      ) : (
        <>
          <Facts run={run} />
          <LogView
            lines={lines}
            label={`Output of command ${number}`}
            fileName={`${slug}-command-${number}.log`}
            height="clamp(20rem, calc(100dvh - 15rem - var(--header)), 60rem)"
            empty={complete ? "This command printed nothing." : "Waiting for the first line …"}
          />
        </>
      )}
    </Page>
  );
}

function Facts({ run }: { readonly run: Run }) {
  return (
    <>
      <Command>{run.command}</Command>
      <dl className="grid grid-cols-2 gap-4 rounded-md border border-line p-4 sm:grid-cols-3 lg:grid-cols-6">
        <Fact label="State">
          <span role="status">
            <State of={run.status} />
          </span>
        </Fact>
        <Fact label="Exit code">
          <ExitCode run={run} />
        </Fact>
        <Fact label="Took">
          <RunTime run={run} />
        </Fact>
        <Fact label="Time limit">{duration(run.timeout_seconds * 1000)}</Fact>
        <Fact label="Deployment">#{run.deployment}</Fact>
        <Fact label="Started">
          <Ago at={run.created_at} /> by <Plain>{run.requested_by}</Plain>
        </Fact>
      </dl>
    </>
  );
}
