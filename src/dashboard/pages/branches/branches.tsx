import { GitBranch } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useCall, useWhyNot } from "../../data/api.ts";
import { bytes } from "../../data/format.ts";
import { textOf, Checkbox, NumberField, TextField } from "../../ui/field.tsx";
import { ActionDialog, createRemoval } from "../../ui/action-dialog.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { useOpenDialog } from "../../ui/dialogs.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Section } from "../../ui/page.tsx";
import { State, Tag, Mono } from "../../ui/text.tsx";
import { MomentLine } from "../backups/moments.tsx";

type Branch = Answer<"branches.list">["branches"][number];

/** Copies of the database in servers of their own. */
export function Branches({ slug }: { readonly slug: string }) {
  const branches = useCall("branches.list", { params: { slug } }, { pollMs: refreshMs });
  const openDialog = useOpenDialog();
  return (
    <Section
      title="Branches"
      lead="A branch is a copy of the database to try things on: with a server and a password of its own, changing nothing here, and gone by itself."
      actions={
        <DialogButton icon={<GitBranch size={15} />} row="branches.create" dialog={<Create slug={slug} at="" />}>
          New branch
        </DialogButton>
      }
    >
      <List
        of={branches}
        caption="Branches"
        rows={(answer) => answer.branches}
        columns={columnsFor(slug)}
        keyOf={({ name, created_at }) => `${name} ${created_at}`}
        empty={
          <p className="text-sm text-faint">
            None yet. <code>berth db psql --branch NAME</code> opens one in a terminal.
          </p>
        }
      />
      <Window slug={slug} onPick={(at) => openDialog(<Create slug={slug} at={at} />)} />
    </Section>
  );
}

/** Nothing reports the progress of a branch. */
const refreshMs = (shown: Answer<"branches.list"> | undefined) =>
  shown?.branches.some(({ status }) => status === "copying" || status === "deleting") === true ? 1000 : 30_000;

function columnsFor(slug: string): readonly Column<Branch>[] {
  const removal = createRemoval({
    row: "branches.delete",
    title: "Delete a branch",
    verb: "Delete",
    nameOf: ({ name }: Branch) => name,
    input: ({ name }) => ({ params: { slug, branch: name } }),
    warning: "Its connections end, and what was written to it is gone. The database stays as it is.",
  });
  return [
    { head: "Branch", grow: true, cell: (branch) => <Named branch={branch} /> },
    { head: "State", cell: ({ status }) => <State of={status} /> },
    timeColumn("Shows", ({ shows, created_at }) => shows ?? created_at),
    { head: "Size", end: true, wide: true, cell: ({ size_bytes, copy_bytes }) => bytes(size_bytes ?? copy_bytes) },
    timeColumn("Ends", ({ expires_at }) => expires_at),
    { head: "", end: true, cell: (branch) => branch.status !== "deleting" && removal.button(branch) },
  ];
}

function Named({ branch }: { readonly branch: Branch }) {
  const { name, masked, used_by, read_only } = branch;
  const note = noteOf(branch);
  return (
    <>
      <Mono className="font-medium">{name}</Mono> {masked && <Tag>masked</Tag>} {read_only && <Tag>read-only</Tag>}{" "}
      {used_by !== null && <Tag>used by {used_by}</Tag>}{" "}
      {note !== null && (
        <span className="text-muted" title={note}>
          {note}
        </span>
      )}
    </>
  );
}

function noteOf({ status, failure, copy_bytes, expected_seconds }: Branch): string | null {
  if (failure !== null) return failure.summary;
  if (status !== "copying" || copy_bytes === null) return null;
  return `${bytes(copy_bytes)} to copy, about ${expected_seconds ?? 0} s`;
}

interface WindowProps {
  readonly slug: string;
  readonly onPick: (at: string) => void;
}

/** The moments that a branch can show. Shows nothing where none are kept. */
function Window({ slug, onPick }: WindowProps) {
  const refused = [useWhyNot("backups.archive"), useWhyNot("branches.create")].some((why) => why !== undefined);
  const archive = useCall("backups.archive", { params: { slug } }, { enabled: !refused });
  if (archive.data === undefined || archive.data.windows.length === 0) return null;
  return <MomentLine slug={slug} archive={archive.data} onPick={onPick} />;
}

interface CreateProps {
  readonly slug: string;
  /** The moment that the new branch shows; empty: now. */
  readonly at: string;
}

function Create({ slug, at }: CreateProps) {
  return (
    <ActionDialog
      row="branches.create"
      title="New branch"
      submit="Copy the database"
      input={(form) => ({ params: { slug }, body: bodyOf(form) })}
    >
      <TextField name="name" label="Name" required mono placeholder="try" />
      <TextField
        name="at"
        label="Moment (UTC)"
        hint="Empty: now. The line below the branches shows which moments there are."
        type="datetime-local"
        step={0.001}
        defaultValue={at.replace("Z", "")}
      />
      <NumberField
        name="ttl_minutes"
        label="Minutes until it ends"
        hint="Empty: as the platform says, usually a day."
        required={false}
        min={1}
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
