import { RefreshCw } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useAction, useCall } from "../../data/api.ts";
import { bytes } from "../../data/format.ts";
import { useWhyNot } from "../../data/me.ts";
import { Button } from "../../ui/button.tsx";
import { Section } from "../../ui/page.tsx";
import { Problem } from "../../ui/problem.tsx";
import { Status, type Tone } from "../../ui/status.tsx";
import { Table, type Column } from "../../ui/table.tsx";
import { Ago, Mono } from "../../ui/text.tsx";
import { View } from "../../ui/view.tsx";

type Process = Answer<"processes.list">["processes"][number];
type Replica = Process["running"][number];

/** What runs of each process type, and starting it anew. */
export function Processes({ slug }: { readonly slug: string }) {
  const processes = useCall("processes.list", { params: { slug } });
  const restart = useAction("processes.restart");
  const why = useWhyNot("processes.restart");
  const action = (
    <Button
      icon={<RefreshCw size={14} />}
      why={why}
      busy={restart.isPending}
      onClick={() => restart.mutate({ params: { slug }, body: {} })}
    >
      Restart
    </Button>
  );
  return (
    <Section title="Processes" actions={action}>
      {restart.error !== null && <Problem error={restart.error} />}
      <View of={processes}>
        {(data) => (
          <Table
            caption="Processes"
            rows={data.processes.flatMap(rowsOf)}
            columns={columns}
            keyOf={({ type, replica }) => `${type} ${replica?.deployment} ${replica?.replica}`}
          />
        )}
      </View>
    </Section>
  );
}

interface Row {
  readonly type: string;
  readonly command: string;
  /** Undefined for a type of which nothing runs. */
  readonly replica: Replica | undefined;
}

function rowsOf({ type, command, running }: Process): Row[] {
  if (running.length === 0) return [{ type, command, replica: undefined }];
  return running.map((replica) => ({ type, command, replica }));
}

const states: Record<Replica["state"], readonly [Tone, string]> = {
  starting: ["busy", "Starting"],
  up: ["ok", "Up"],
  stopping: ["off", "Stopping"],
  crashed: ["bad", "Crashed"],
};

const columns: readonly Column<Row>[] = [
  { head: "State", cell: ({ replica }) => <ReplicaState of={replica} /> },
  {
    head: "Process",
    grow: true,
    cell: ({ type, command, replica }) => (
      <span className="flex min-w-0 flex-col leading-4.5">
        <span className="font-medium">
          {type}
          {replica !== undefined && <span className="font-normal text-faint"> · replica {replica.replica}</span>}
        </span>
        <Mono className="truncate text-xs text-faint">{command}</Mono>
      </span>
    ),
  },
  { head: "Memory", end: true, wide: true, cell: ({ replica }) => bytes(replica?.memory_bytes) },
  { head: "Processors", end: true, wide: true, cell: ({ replica }) => replica?.cpus?.toFixed(2) ?? "–" },
  { head: "Restarts", end: true, wide: true, cell: ({ replica }) => replica?.restarts ?? "–" },
  { head: "Since", end: true, wide: true, cell: ({ replica }) => replica !== undefined && <Ago at={replica.since} /> },
];

function ReplicaState({ of }: { readonly of: Replica | undefined }) {
  if (of === undefined) return <Status tone="off">None runs</Status>;
  const [tone, word] = states[of.state];
  return <Status tone={tone}>{word}</Status>;
}
