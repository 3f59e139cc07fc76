import { Plus } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useCall, useDryRun } from "../../data/api.ts";
import { bytes, compareNames, plural } from "../../data/format.ts";
import { ActionDialog, ConfirmAction } from "../../ui/action-dialog.tsx";
import { Command, DialogButton } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useOpenDialog } from "../../ui/dialogs.tsx";
import { Section, View } from "../../ui/page.tsx";
import { Status, Tag, Mono, Plain, type Tone } from "../../ui/text.tsx";
import { Table, type Column } from "../../ui/table.tsx";

type PooledMachine = Answer<"platform.machines">["machines"][number];

// Replicas leave a drained machine one after the other, so the list keeps changing.
const refreshMs = 5000;

/** Lists the machines of the swarm. Shows nothing on a platform without a swarm. */
export function Machines() {
  const machines = useCall("platform.machines", {}, { pollMs: refreshMs });
  return (
    <View of={machines} skeleton={null}>
      {(data) => data.machines.length > 0 && <Swarm machines={data.machines} />}
    </View>
  );
}

function Swarm({ machines }: { readonly machines: readonly PooledMachine[] }) {
  return (
    <Section
      title="Machines of the swarm"
      lead="Where replicas run. A replica starts on a machine that is ready."
      actions={
        <DialogButton icon={<Plus size={15} />} row="platform.join" dialog={<Join />}>
          Add a machine
        </DialogButton>
      }
    >
      <Table
        caption="Machines of the swarm"
        rows={machines.toSorted((a, b) => compareNames(a.name, b.name))}
        keyOf={({ id }) => id}
        columns={[...columns, { head: "", end: true, cell: (machine) => <Actions machine={machine} /> }]}
      />
    </Section>
  );
}

const columns: readonly Column<PooledMachine>[] = [
  { head: "State", cell: (machine) => <MachineState machine={machine} /> },
  {
    head: "Machine",
    grow: true,
    cell: ({ name, address, role, replicas }) => (
      <span className="flex flex-col items-start leading-4.5">
        <span className="flex flex-wrap items-center gap-x-2 font-medium">
          <Plain>{name}</Plain>
          {role === "manager" && <Tag>manager</Tag>}
        </span>
        <span className="text-xs text-faint max-sm:hidden">
          <Mono>{address}</Mono>
        </span>
        <span className="text-xs text-faint sm:hidden">{plural(replicas, "replica")}</span>
      </span>
    ),
  },
  { head: "Replicas", end: true, wide: true, cell: ({ replicas }) => replicas },
  { head: "Processors", end: true, wide: true, cell: ({ cpus }) => cpus },
  { head: "Memory", end: true, wide: true, cell: ({ memory_bytes: memory }) => bytes(memory) },
  { head: "Engine", wide: true, cell: ({ version }) => <Plain>{version}</Plain> },
];

const lost: Record<Exclude<PooledMachine["state"], "ready">, readonly [Tone, string]> = {
  down: ["bad", "Down"],
  disconnected: ["bad", "Disconnected"],
  unknown: ["warn", "Unknown"],
};

function MachineState({ machine: { state, takes_replicas, guarded } }: { readonly machine: PooledMachine }) {
  const [tone, word] =
    state !== "ready"
      ? lost[state]
      : !takes_replicas
        ? (["off", "Drained"] as const)
        : guarded
          ? (["ok", "Ready"] as const)
          : (["bad", "Not guarded"] as const);
  return <Status tone={tone}>{word}</Status>;
}

function Actions({ machine }: ChangeProps) {
  const { takes_replicas: isUsed } = machine;
  return (
    <span className="inline-flex max-sm:flex-col max-sm:items-end">
      <DialogButton look="quiet" row="platform.drain" dialog={<Drain machine={machine} />}>
        {isUsed ? "Drain" : "Use again"}
      </DialogButton>
      <DialogButton
        look="quiet"
        row="platform.dismiss"
        why={whyNotRemoved(machine)}
        dialog={<Remove machine={machine} />}
      >
        Remove
      </DialogButton>
    </span>
  );
}

function whyNotRemoved({ role, state, takes_replicas, replicas }: PooledMachine): string | undefined {
  if (role === "manager") return "It manages the swarm: docker node demote makes it a worker.";
  return state === "ready" && (takes_replicas || replicas > 0) ? "Drain it first." : undefined;
}

interface ChangeProps {
  readonly machine: PooledMachine;
}

/** Drains a machine, or uses it again. */
function Drain({ machine: { id, name, replicas, takes_replicas: isDrained } }: ChangeProps) {
  return (
    <ActionDialog
      row="platform.drain"
      title={isDrained ? `Drain ${name}` : `Use ${name} again`}
      submit={isDrained ? "Drain" : "Use again"}
      input={() => ({ params: { machine: id }, body: { takes_replicas: !isDrained } })}
    >
      <p className="text-sm text-muted">
        {isDrained
          ? `${plural(replicas, "replica")} of ${name} start on other machines and pass their health checks there before they end here. It gets no new ones. A project whose restart fails stays where it is.`
          : `New replicas may start on ${name}. Those that run elsewhere stay there until they are started anew.`}
      </p>
    </ActionDialog>
  );
}

function Remove({ machine: { id, name } }: ChangeProps) {
  const params = { machine: id };
  const reach = useDryRun("platform.dismiss", { params });
  return (
    <ConfirmAction row="platform.dismiss" title={`Remove ${name}`} submit="Remove" typed={name} input={{ params }}>
      <p>It leaves the swarm and gets no replicas any more.</p>
      <View of={reach}>{(data) => <Touched projects={data.would_change?.detail["projects"]} />}</View>
      <p className="mt-3">
        To make the machine itself forget the swarm, run <Mono>docker swarm leave</Mono> there.
      </p>
    </ConfirmAction>
  );
}

function Touched({ projects }: { readonly projects: unknown }) {
  const names = Array.isArray(projects) ? projects.map(String) : [];
  if (names.length === 0) return <p className="mt-3">No project has a replica on it.</p>;
  return (
    <>
      <p className="mt-3">
        {plural(names.length, "project has", "projects have")} replicas on it. They start elsewhere:
      </p>
      <ul className="mt-1.5 max-h-40 overflow-y-auto rounded-md border border-line px-3 py-2 text-text" tabIndex={0}>
        {names.map((each) => (
          <li key={each}>
            <Mono>{each}</Mono>
          </li>
        ))}
      </ul>
    </>
  );
}

function Join() {
  const openDialog = useOpenDialog();
  return (
    <ActionDialog
      row="platform.join"
      title="Add a machine"
      submit="Show the script"
      input={() => ({})}
      onDone={({ script }) =>
        openDialog(
          <Dialog title="Add a machine" shape="wide">
            <p className="mb-4 text-sm text-muted">
              Run this as root on the new machine. It holds the swarm's secrets: keep it to yourself.
            </p>
            <Command>{(script ?? "").trimEnd()}</Command>
          </Dialog>,
        )
      }
    >
      <p className="text-sm text-muted">
        A script joins a machine with docker.io and nftables to the swarm. It contains the swarm's secrets, so the
        activity records that it was shown. On the command line: <Mono>berth machines join</Mono>.
      </p>
    </ActionDialog>
  );
}
