import { ArrowUpCircle, Plus } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { bytes, capitalized } from "../../data/format.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { List, type Column } from "../../ui/table.tsx";
import { Section, Empty, View } from "../../ui/page.tsx";
import { State, Tag, Ago, Mono } from "../../ui/text.tsx";

type Versions = Answer<"platform.versions">;
type Backup = Answer<"platform.backups">["backups"][number];

const workingMs = 3000;

/** Offers a newer version, and shows the upgrade that runs or did not succeed. Shows nothing otherwise. */
export function Upgrade() {
  const versions = useCall("platform.versions", {}, { pollMs: workingMs });
  return (
    <View of={versions} skeleton={null}>
      {({ newer, installed, upgrade }) => {
        const isOffered = newer !== null && installed.length > 0;
        const isShown = upgrade !== null && upgrade.status !== "done";
        if (!isOffered && !isShown) return null;
        return (
          <Section
            title="Upgrade"
            lead="Applications go on, and Berth goes back by itself if the new version does not serve."
            actions={
              isOffered && (
                <DialogButton
                  look="primary"
                  icon={<ArrowUpCircle size={15} />}
                  row="platform.upgrade"
                  why={upgrade?.status === "in_progress" ? "An upgrade is under way." : undefined}
                  dialog={<UpgradeDialog to={newer} />}
                >
                  Upgrade to {newer}
                </DialogButton>
              )
            }
          >
            {isShown && <Newest upgrade={upgrade} />}
          </Section>
        );
      }}
    </View>
  );
}

function UpgradeDialog({ to }: { readonly to: string }) {
  return (
    <ActionDialog
      row="platform.upgrade"
      title={`Upgrade to Berth ${to}`}
      submit="Upgrade"
      input={() => ({ body: { source: to } })}
    >
      <p className="text-sm text-muted">
        Berth verifies the release, backs the platform up, copies its database, tries the new version on the copy, and
        replaces the control plane. Pushes and this page wait a few seconds meanwhile.
      </p>
    </ActionDialog>
  );
}

const states = {
  in_progress: ["running", "Running"],
  done: ["completed", "Done"],
  failed: ["failed", "Failed"],
  went_back: ["failed", "Went back"],
} as const;

function Newest({
  upgrade: { from, to, status, reason, steps },
}: {
  readonly upgrade: NonNullable<Versions["upgrade"]>;
}) {
  const step = steps.at(-1)?.step;
  const [of, word] = states[status];
  return (
    <p className="flex flex-wrap items-center gap-2 text-sm">
      <State of={of} word={word} />
      {from} to {to ?? "a release"}
      {status === "in_progress" && step !== undefined && <span className="text-muted">{capitalized(step)}</span>}
      {reason !== null && <span className="text-muted">{reason}</span>}
    </p>
  );
}

export function PlatformBackups() {
  const backups = useCall("platform.backups", {}, { pollMs: workingMs });
  const isWorking = backups.data?.backups.some(({ status }) => status === "running") ?? false;
  return (
    <Section
      title="Backups of the platform"
      lead="Its database, keys, settings and repositories, each night. Only the recovery key opens them: keep it away from this machine."
      actions={
        <ActionButton
          icon={<Plus size={15} />}
          row="platform.back_up"
          label="Back up the platform"
          why={isWorking ? "A backup is under way." : undefined}
          input={{}}
        />
      }
    >
      <List
        of={backups}
        caption="Backups of the platform"
        rows={(data) => data.backups}
        columns={columns}
        keyOf={({ id }) => id}
        empty={<Empty title="No backups yet">Berth makes the first one in the next night, or now on request.</Empty>}
      />
    </Section>
  );
}

const columns: readonly Column<Backup>[] = [
  { head: "State", cell: ({ status }) => <State of={status} /> },
  {
    head: "Made",
    grow: true,
    cell: ({ id, created_at: at, problem }) => (
      <span className="flex flex-col leading-4.5">
        <Ago at={at} className="font-medium" />
        {problem === null ? (
          <Mono className="truncate text-xs text-faint">{id}</Mono>
        ) : (
          <span className="text-xs text-bad">{problem}</span>
        )}
      </span>
    ),
  },
  { head: "By", wide: true, cell: ({ origin }) => <Tag>{origin}</Tag> },
  { head: "In", wide: true, cell: ({ storage }) => storage ?? "" },
  { head: "Size", end: true, cell: ({ size_bytes: size }) => bytes(size) },
];
