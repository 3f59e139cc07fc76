import { RefreshCw } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { limits } from "../../../contract/limits.ts";
import { useAction, useCall, useWhyNot } from "../../data/api.ts";
import { bytes } from "../../data/format.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { Select } from "../../ui/field.tsx";
import { List, type Column } from "../../ui/table.tsx";
import { Section, Empty, Problem } from "../../ui/page.tsx";
import { Status, Ago, Mono, type Tone } from "../../ui/text.tsx";
import { HowToDeploy } from "../projects/how-to-deploy.tsx";

type Process = Answer<"processes.list">["processes"][number];
type Replica = Process["running"][number];

/** Lists the replicas of each process type, with controls to scale and restart it. */
export function Processes({ slug }: { readonly slug: string }) {
  const processes = useCall("processes.list", { params: { slug } });
  const restart = useAction("processes.restart");
  const scale = useAction("processes.set");
  const problem = restart.error ?? scale.error;
  const all = processes.data?.processes ?? [];
  const action = (
    <Button
      icon={<RefreshCw size={14} />}
      row="processes.restart"
      why={all.length === 0 ? "Nothing runs yet." : undefined}
      busy={restart.isPending && restart.variables.body.type === undefined}
      onClick={() => restart.mutate({ params: { slug }, body: {} })}
    >
      Restart all
    </Button>
  );
  return (
    <Section
      title="Process types"
      lead="The lines of the Procfile. A restart starts new replicas first, so that no request is lost."
      actions={action}
    >
      {problem !== null && <Problem error={problem} />}
      <List
        of={processes}
        caption="Processes"
        rows={(data) => data.processes.flatMap(rowsOf)}
        columns={columnsFor({
          onScale: (type, replicas) => scale.mutate({ params: { slug, type }, body: { replicas } }),
          onRestart: (type) => restart.mutate({ params: { slug }, body: { type } }),
          busy: restart.isPending || scale.isPending,
        })}
        keyOf={({ process, replica }) => `${process.type} ${replica?.deployment} ${replica?.replica}`}
        empty={
          <Empty title="Nothing runs yet" action={<HowToDeploy slug={slug} />}>
            Each process type of the active deployment is listed here.
          </Empty>
        }
      />
    </Section>
  );
}

interface Row {
  readonly process: Process;
  /** Undefined if no replica of the type runs. */
  readonly replica: Replica | undefined;
  /** The first row of a type has its controls. */
  readonly isFirst: boolean;
}

function rowsOf(process: Process): Row[] {
  if (process.running.length === 0) return [{ process, replica: undefined, isFirst: true }];
  return process.running.map((replica, index) => ({ process, replica, isFirst: index === 0 }));
}

const states: Record<Replica["state"], readonly [Tone, string]> = {
  starting: ["busy", "Starting"],
  up: ["ok", "Up"],
  stopping: ["off", "Stopping"],
  crashed: ["bad", "Crashed"],
};

interface Controls {
  readonly onScale: (type: string, replicas: number) => void;
  readonly onRestart: (type: string) => void;
  readonly busy: boolean;
}

function columnsFor(controls: Controls): readonly Column<Row>[] {
  return [
    { head: "State", cell: ({ replica }) => <ReplicaState of={replica} /> },
    {
      head: "Process",
      grow: true,
      cell: ({ process: { type, command }, replica }) => (
        <span className="flex min-w-0 flex-col leading-4.5">
          <span className="font-medium">
            {type}
            {replica !== undefined && <span className="font-normal text-faint"> · replica {replica.replica}</span>}
          </span>
          <Mono className="truncate text-xs text-faint">{command}</Mono>
        </span>
      ),
    },
    {
      head: "Deployment",
      end: true,
      wide: true,
      cell: ({ replica }) => (replica === undefined ? "–" : `#${replica.deployment}`),
    },
    { head: "Memory", end: true, wide: true, cell: ({ replica }) => bytes(replica?.memory_bytes) },
    { head: "Processors", end: true, wide: true, cell: ({ replica }) => replica?.cpus?.toFixed(2) ?? "–" },
    { head: "Restarts", end: true, wide: true, cell: ({ replica }) => replica?.restarts ?? "–" },
    {
      head: "Since",
      end: true,
      wide: true,
      cell: ({ replica }) => replica !== undefined && <Ago at={replica.since} className="text-muted" />,
    },
    { head: "Replicas", end: true, cell: (row) => row.isFirst && <TypeControls row={row} {...controls} /> },
  ];
}

function TypeControls({ row: { process }, onScale, onRestart, busy }: Controls & { readonly row: Row }) {
  const { type, replicas } = process;
  const scaleRefused = useWhyNot("processes.set");
  // Requests always need at least one replica.
  const least = type === "web" ? 1 : 0;
  return (
    <span className="inline-flex items-center gap-1">
      <Select
        aria-label={`Replicas of ${type}`}
        title={scaleRefused}
        className="!w-20"
        value={replicas}
        disabled={busy || scaleRefused !== undefined}
        onChange={(event) => onScale(type, Number(event.target.value))}
      >
        {Array.from({ length: limits.replicas + 1 - least }, (_, index) => (
          <option key={index}>{index + least}</option>
        ))}
      </Select>
      <IconButton
        label={`Restart ${type}`}
        row="processes.restart"
        aria-disabled={busy}
        className="max-sm:hidden"
        onClick={() => busy || onRestart(type)}
      >
        <RefreshCw size={14} />
      </IconButton>
    </span>
  );
}

function ReplicaState({ of }: { readonly of: Replica | undefined }) {
  if (of === undefined) return <Status tone="off">None runs</Status>;
  const [tone, word] = states[of.state];
  return <Status tone={tone}>{word}</Status>;
}
