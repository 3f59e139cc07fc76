import { Plus } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { textOf, Field, TextArea, TextField } from "../../ui/field.tsx";
import { ActionDialog, createRemoval } from "../../ui/action-dialog.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { List, timeColumn } from "../../ui/table.tsx";
import { Section, Empty } from "../../ui/page.tsx";
import { Status, Mono, Plain } from "../../ui/text.tsx";

type Key = Answer<"ssh-keys.list">["ssh_keys"][number];

/** Lists the keys for git over SSH. Each has the rights of the token that registered it, and is valid as long as that token. */
export function SshKeys() {
  const keys = useCall("ssh-keys.list", {});
  return (
    <Section
      title="SSH keys"
      lead="For git over SSH. A key is valid as long as the token that registered it."
      actions={
        <DialogButton icon={<Plus size={15} />} row="ssh-keys.create" dialog={<AddKey />}>
          Add a key
        </DialogButton>
      }
    >
      <List
        of={keys}
        caption="SSH keys"
        rows={(data) => data.ssh_keys}
        columns={[
          { head: "Name", cell: ({ name }) => <Plain>{name}</Plain> },
          {
            head: "Fingerprint",
            grow: true,
            cell: ({ fingerprint }) => <Mono className="text-muted">{fingerprint}</Mono>,
          },
          {
            head: "State",
            cell: ({ active }) => (active ? <Status tone="ok">Active</Status> : <Status tone="off">Token gone</Status>),
          },
          timeColumn("Added", (row: Key) => row.created_at),
          removal.column,
        ]}
        keyOf={({ id }) => id}
        empty={
          <Empty title="No keys yet" command="berth keys add ~/.ssh/id_ed25519.pub">
            git over HTTP works with a token as its password.
          </Empty>
        }
      />
    </Section>
  );
}

const removal = createRemoval({
  row: "ssh-keys.delete",
  title: "Remove a key",
  nameOf: ({ name }: Key) => name,
  input: ({ id }) => ({ params: { id } }),
  warning: "git refuses it at once.",
});

export function AddKey() {
  return (
    <ActionDialog
      row="ssh-keys.create"
      title="Add an SSH key"
      submit="Add"
      input={(form) => ({ body: { name: textOf(form, "name"), public_key: textOf(form, "public_key").trim() } })}
    >
      <TextField name="name" label="Name" required maxLength={100} placeholder="laptop" />
      <Field name="public_key" label="Public key" hint="The content of a .pub file.">
        {(field) => <TextArea {...field} rows={4} required placeholder="ssh-ed25519 AAAA…" />}
      </Field>
    </ActionDialog>
  );
}
