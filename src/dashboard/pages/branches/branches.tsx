import { GitBranch } from "lucide-react";
import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { bytes, exact } from "../../data/format.ts";
import { textOf } from "../../data/text-of.ts";
import { ActionDialog, ConfirmAction } from "../../ui/action-dialog.tsx";
import { Button } from "../../ui/button.tsx";
import { Checkbox, NumberField, TextField } from "../../ui/field.tsx";
import { List } from "../../ui/list.tsx";
import { Section } from "../../ui/page.tsx";
import { State, Tag } from "../../ui/status.tsx";
import { timeColumn, type Column } from "../../ui/table.tsx";
import { Mono } from "../../ui/text.tsx";

type Branch = Answer<"branches.list">["branches"][number];

/** Copies of the database in servers of their own. */
export function Branches({ slug }: { readonly slug: string }) {
  const branches = useCall("branches.list", { params: { slug } }, { pollMs: refreshMs });
  const [deleted, setDeleted] = useState<string>();
  const [isCreating, setCreating] = useState(false);
  return (
    <Section
      title="Branches"
      lead="A branch is a copy of the database to try things on: with a server and a password of its own, changing nothing here, and gone by itself."
    >
      <List
        of={branches}
        caption="Branches"
        rows={(answer) => answer.branches}
        columns={columnsFor(setDeleted)}
        keyOf={({ name, created_at }) => `${name} ${created_at}`}
        empty={
          <p className="text-sm text-faint">
            None yet. <code>berth db psql --branch NAME</code> opens one in a terminal.
          </p>
        }
      />
      <div>
        <Button icon={<GitBranch size={15} />} row="branches.create" onClick={() => setCreating(true)}>
          New branch
        </Button>
      </div>
      {isCreating && <Create slug={slug} onClose={() => setCreating(false)} />}
      {deleted !== undefined && (
        <ConfirmAction
          row="branches.delete"
          title="Delete a branch"
          submit="Delete"
          typed={deleted}
          input={{ params: { slug, branch: deleted } }}
          onClose={() => setDeleted(undefined)}
        >
          Its connections end, and what was written to it is gone. The database stays as it is.
        </ConfirmAction>
      )}
    </Section>
  );
}

/** Nothing reports the progress of a branch. */
const refreshMs = (shown: Answer<"branches.list"> | undefined) =>
  shown?.branches.some(({ status }) => status === "copying" || status === "deleting") === true ? 1000 : 30_000;

function columnsFor(onDelete: (name: string) => void): readonly Column<Branch>[] {
  return [
    {
      head: "Branch",
      grow: true,
      cell: ({ name, masked, used_by }) => (
        <>
          <Mono className="font-medium">{name}</Mono> {masked && <Tag>masked</Tag>}{" "}
          {used_by !== null && <Tag>used by {used_by}</Tag>}
        </>
      ),
    },
    { head: "State", cell: (branch) => <StateOf branch={branch} /> },
    {
      head: "Shows",
      wide: true,
      cell: ({ shows, created_at }) => <span className="text-muted">{exact(shows ?? created_at)}</span>,
    },
    { head: "Size", end: true, wide: true, cell: ({ size_bytes, copy_bytes }) => bytes(size_bytes ?? copy_bytes) },
    timeColumn("Made", ({ created_at }) => created_at),
    { head: "Ends", end: true, wide: true, cell: ({ expires_at }) => exact(expires_at) },
    {
      head: "",
      end: true,
      cell: ({ name, status }) =>
        status !== "deleting" && (
          <Button look="quiet" className="h-7" row="branches.delete" onClick={() => onDelete(name)}>
            Delete
          </Button>
        ),
    },
  ];
}

function StateOf({ branch: { status, failure, expected_seconds, read_only } }: { readonly branch: Branch }) {
  const note =
    failure?.summary ??
    (status === "copying" && expected_seconds !== null
      ? `about ${expected_seconds} s`
      : read_only
        ? "read-only"
        : null);
  return (
    <span title={failure?.summary}>
      <State of={status} /> {note !== null && <span className="text-sm text-muted">{note}</span>}
    </span>
  );
}

function Create({ slug, onClose }: { readonly slug: string; readonly onClose: () => void }) {
  return (
    <ActionDialog
      row="branches.create"
      title="New branch"
      submit="Copy the database"
      input={(form) => ({ params: { slug }, body: bodyOf(form) })}
      onClose={onClose}
    >
      <TextField name="name" label="Name" required mono placeholder="try" />
      <TextField
        name="at"
        label="Moment (UTC)"
        hint="Empty: now. Backups shows which moments there are."
        type="datetime-local"
        step={1}
      />
      <NumberField
        name="ttl_minutes"
        label="Minutes until it ends"
        hint="Empty: as the platform says, usually a day."
      />
      <Checkbox name="mask" label="Mask it with the SQL that berth.json names, before anybody can reach it" />
    </ActionDialog>
  );
}

function bodyOf(form: FormData) {
  const at = textOf(form, "at");
  const minutes = textOf(form, "ttl_minutes");
  return {
    ...{ name: textOf(form, "name"), mask: form.has("mask") },
    ...(at === "" ? {} : { at: `${at}Z` }),
    ...(minutes === "" ? {} : { ttl_minutes: Number(minutes) }),
  };
}
