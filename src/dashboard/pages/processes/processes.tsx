import { Pencil, RefreshCw } from "lucide-react";
import type { ReactNode } from "react";
import type { Answer } from "../../../contract/client.ts";
import { limits } from "../../../contract/limits.ts";
import { useCall } from "../../data/api.ts";
import { bytes, plural } from "../../data/format.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { textOf, NumberField } from "../../ui/field.tsx";
import { List, type Column } from "../../ui/table.tsx";
import { Section, Empty } from "../../ui/page.tsx";
import { Status, Ago, Mono, type Tone } from "../../ui/text.tsx";
import { HowToDeploy } from "../projects/how-to-deploy.tsx";

type Process = Answer<"processes.list">["processes"][number];
type Replica = Process["running"][number];

/** Lists the replicas of each process type, with controls to scale and restart it. */
export function Processes({ slug }: { readonly slug: string }) {
  const processes = useCall("processes.list", { params: { slug } });
  const all = processes.data?.processes ?? [];
  const action = (
    <ActionButton
      icon={<RefreshCw size={14} />}
      why={all.length === 0 ? "Nothing runs yet." : undefined}
      {...restartAll(slug)}
    />
  );
  return (
    <Section
      title="Process types"
      lead="The lines of the Procfile. A restart starts new replicas first, so that no request is lost."
      actions={action}
    >
      <List
        of={processes}
        caption="Processes"
        rows={(data) => data.processes.flatMap(rowsOf)}
        columns={columnsFor(slug)}
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

function columnsFor(slug: string): readonly Column<Row>[] {
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
    {
      head: "Replicas",
      end: true,
      cell: ({ isFirst, process }) => isFirst && <TypeControls slug={slug} process={process} />,
    },
  ];
}

interface OfProcess {
  readonly slug: string;
  readonly process: Process;
}

function TypeControls({ slug, process }: OfProcess) {
  const { type, replicas } = process;
  return (
    <span className="inline-flex items-center gap-1">
      <DialogButton
        icon={<Pencil size={13} />}
        row="processes.set"
        aria-label={`${plural(replicas, "replica")} of ${type}`}
        dialog={<Scale slug={slug} process={process} />}
      >
        {replicas}
      </DialogButton>
      <ActionButton
        look="quiet"
        className="max-sm:hidden"
        row="processes.restart"
        label={`Restart ${type}`}
        aria-label={`Restart ${type}`}
        input={{ params: { slug }, body: { type } }}
      >
        <RefreshCw size={14} />
      </ActionButton>
    </span>
  );
}

export function Scale({ slug, process: { type, replicas }, choice }: OfProcess & { readonly choice?: ReactNode }) {
  return (
    <ActionDialog
      row="processes.set"
      title={`Scale ${type}`}
      submit="Scale"
      input={(form) => ({ params: { slug, type }, body: { replicas: Number(textOf(form, "replicas")) } })}
    >
      {choice}
      <NumberField
        key={type}
        name="replicas"
        label="Replicas"
        // Requests always need at least one replica.
        min={type === "web" ? 1 : 0}
        max={limits.replicas}
        defaultValue={replicas}
      />
    </ActionDialog>
  );
}

export const restartAll = (slug: string) =>
  ({
    row: "processes.restart",
    label: "Restart all",
    input: { params: { slug }, body: {} },
    text: "New replicas are started first, so that no request is lost.",
  }) as const;

function ReplicaState({ of }: { readonly of: Replica | undefined }) {
  if (of === undefined) return <Status tone="off">None runs</Status>;
  const [tone, word] = states[of.state];
  return <Status tone={tone}>{word}</Status>;
}
