import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useAction, useCall } from "../../data/api.ts";
import { useWhyNot } from "../../data/me.ts";
import { textOf } from "../../data/text-of.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { ConfirmDialog, FormDialog } from "../../ui/dialog.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { Section } from "../../ui/page.tsx";
import { fieldProblem } from "../../ui/problem.tsx";
import { Table, type Column } from "../../ui/table.tsx";
import { Ago, Mono, Plain } from "../../ui/text.tsx";
import { Empty, View } from "../../ui/view.tsx";

type Registry = Answer<"registries.list">["registries"][number];

/** What builds log in to for private images. */
export function Registries() {
  const registries = useCall("registries.list", {});
  const why = useWhyNot("registries.set");
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<Registry>();
  return (
    <Section
      title="Image registries"
      lead="Logins for private images, in Dockerfiles and with `berth deploy --image`. Passwords are never shown."
      actions={
        <Button icon={<Plus size={15} />} why={why} onClick={() => setAdding(true)}>
          Add a registry
        </Button>
      }
    >
      <View of={registries}>
        {(data) =>
          data.registries.length === 0 ? (
            <Empty title="No registries yet">Public images need no login.</Empty>
          ) : (
            <Table
              caption="Image registries"
              rows={data.registries}
              columns={columnsFor(setRemoving)}
              keyOf={({ host }) => host}
            />
          )
        }
      </View>
      {adding && <AddRegistry onClose={() => setAdding(false)} />}
      {removing !== undefined && <RemoveRegistry registry={removing} onClose={() => setRemoving(undefined)} />}
    </Section>
  );
}

function columnsFor(onRemove: (registry: Registry) => void): readonly Column<Registry>[] {
  return [
    { head: "Host", grow: true, cell: ({ host }) => <Mono>{host}</Mono> },
    { head: "User", cell: ({ username }) => <Plain>{username}</Plain> },
    {
      head: "Changed",
      end: true,
      wide: true,
      cell: ({ updated_at: at }) => (
        <span className="text-muted">
          <Ago at={at} />
        </span>
      ),
    },
    {
      head: "",
      end: true,
      cell: (registry) => (
        <IconButton label={`Remove ${registry.host}`} onClick={() => onRemove(registry)}>
          <Trash2 size={14} />
        </IconButton>
      ),
    },
  ];
}

function AddRegistry({ onClose }: { readonly onClose: () => void }) {
  const add = useAction("registries.set");
  const submit = (form: FormData) =>
    add.mutate(
      {
        params: { host: textOf(form, "host").trim() },
        body: { username: textOf(form, "username").trim(), password: textOf(form, "password") },
      },
      { onSuccess: onClose },
    );
  return (
    <FormDialog
      title="Add a registry"
      submit="Add"
      busy={add.isPending}
      error={add.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Host" hint="Docker Hub is docker.io." error={fieldProblem(add.error, "host")}>
        {(ids) => <Input {...ids} name="host" required autoFocus maxLength={255} placeholder="ghcr.io" />}
      </Field>
      <Field label="User" error={fieldProblem(add.error, "username")}>
        {(ids) => <Input {...ids} name="username" required maxLength={255} autoComplete="off" />}
      </Field>
      <Field label="Password or access token" error={fieldProblem(add.error, "password")}>
        {(ids) => <Input {...ids} name="password" type="password" required autoComplete="new-password" />}
      </Field>
    </FormDialog>
  );
}

function RemoveRegistry({ registry, onClose }: { readonly registry: Registry; readonly onClose: () => void }) {
  const remove = useAction("registries.delete");
  return (
    <ConfirmDialog
      title="Remove a registry"
      submit="Remove"
      typed={registry.host}
      busy={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { host: registry.host } }, { onSuccess: onClose })}
    >
      <p className="text-sm text-muted">Builds can pull no private image from there any more.</p>
    </ConfirmDialog>
  );
}
