import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useAction, useCall } from "../../data/api.ts";
import { useWhyNot } from "../../data/me.ts";
import { textOf } from "../../data/text-of.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { ConfirmDialog, FormDialog } from "../../ui/dialog.tsx";
import { Field, Input, TextArea } from "../../ui/field.tsx";
import { Section } from "../../ui/page.tsx";
import { fieldProblem } from "../../ui/problem.tsx";
import { Status } from "../../ui/status.tsx";
import { Table, type Column } from "../../ui/table.tsx";
import { Ago, Mono, Plain } from "../../ui/text.tsx";
import { Empty, View } from "../../ui/view.tsx";

type Key = Answer<"ssh-keys.list">["ssh_keys"][number];

/** Keys for git over SSH. Each is as good as the token that registered it. */
export function SshKeys() {
  const keys = useCall("ssh-keys.list", {});
  const why = useWhyNot("ssh-keys.create");
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<Key>();
  return (
    <Section
      title="SSH keys"
      lead="For git over SSH. A key is valid as long as the token that registered it."
      actions={
        <Button icon={<Plus size={15} />} why={why} onClick={() => setAdding(true)}>
          Add a key
        </Button>
      }
    >
      <View of={keys}>
        {(data) =>
          data.ssh_keys.length === 0 ? (
            <Empty title="No keys yet">git over HTTP works with a token as its password.</Empty>
          ) : (
            <Table caption="SSH keys" rows={data.ssh_keys} columns={columnsFor(setRemoving)} keyOf={({ id }) => id} />
          )
        }
      </View>
      {adding && <AddKey onClose={() => setAdding(false)} />}
      {removing !== undefined && <RemoveKey sshKey={removing} onClose={() => setRemoving(undefined)} />}
    </Section>
  );
}

function columnsFor(onRemove: (key: Key) => void): readonly Column<Key>[] {
  return [
    { head: "Name", cell: ({ name }) => <Plain>{name}</Plain> },
    { head: "Fingerprint", grow: true, cell: ({ fingerprint }) => <Mono className="text-muted">{fingerprint}</Mono> },
    {
      head: "State",
      cell: ({ active }) => (active ? <Status tone="ok">Active</Status> : <Status tone="off">Token gone</Status>),
    },
    {
      head: "Added",
      end: true,
      wide: true,
      cell: ({ created_at: at }) => (
        <span className="text-muted">
          <Ago at={at} />
        </span>
      ),
    },
    {
      head: "",
      end: true,
      cell: (key) => (
        <IconButton label={`Remove ${key.name}`} onClick={() => onRemove(key)}>
          <Trash2 size={14} />
        </IconButton>
      ),
    },
  ];
}

function AddKey({ onClose }: { readonly onClose: () => void }) {
  const add = useAction("ssh-keys.create");
  const submit = (form: FormData) =>
    add.mutate(
      { body: { name: textOf(form, "name"), public_key: textOf(form, "key").trim() } },
      { onSuccess: onClose },
    );
  return (
    <FormDialog
      title="Add an SSH key"
      submit="Add"
      busy={add.isPending}
      error={add.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Name" error={fieldProblem(add.error, "name")}>
        {(ids) => <Input {...ids} name="name" required autoFocus maxLength={100} placeholder="laptop" />}
      </Field>
      <Field label="Public key" hint="The content of a .pub file." error={fieldProblem(add.error, "public_key")}>
        {(ids) => <TextArea {...ids} name="key" rows={4} required placeholder="ssh-ed25519 AAAA…" />}
      </Field>
    </FormDialog>
  );
}

function RemoveKey({ sshKey, onClose }: { readonly sshKey: Key; readonly onClose: () => void }) {
  const remove = useAction("ssh-keys.delete");
  return (
    <ConfirmDialog
      title="Remove a key"
      submit="Remove"
      typed={sshKey.name}
      busy={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { id: sshKey.id } }, { onSuccess: onClose })}
    >
      <p className="text-sm text-muted">git refuses it at once.</p>
    </ConfirmDialog>
  );
}
