import { Plus } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { textOf, TextField } from "../../ui/field.tsx";
import { ActionDialog, createRemoval } from "../../ui/action-dialog.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { List, timeColumn } from "../../ui/table.tsx";
import { Section, Empty } from "../../ui/page.tsx";
import { Mono, Plain } from "../../ui/text.tsx";

type Registry = Answer<"registries.list">["registries"][number];

/** Lists the registries that builds log in to for private images. */
export function Registries() {
  const registries = useCall("registries.list", {});
  return (
    <Section
      title="Image registries"
      lead={
        <>
          Logins for private images, in Dockerfiles and with <code>berth deploy --image</code>. Passwords are never
          shown.
        </>
      }
      actions={
        <DialogButton icon={<Plus size={15} />} row="registries.set" dialog={<AddRegistry />}>
          Add a registry
        </DialogButton>
      }
    >
      <List
        of={registries}
        caption="Image registries"
        rows={(data) => data.registries}
        columns={[
          { head: "Host", grow: true, cell: ({ host }) => <Mono>{host}</Mono> },
          { head: "User", cell: ({ username }) => <Plain>{username}</Plain> },
          timeColumn("Changed", (row: Registry) => row.updated_at),
          removal.column,
        ]}
        keyOf={({ host }) => host}
        empty={<Empty title="No registries yet">Public images need no login.</Empty>}
      />
    </Section>
  );
}

const removal = createRemoval({
  row: "registries.delete",
  title: "Remove a registry",
  nameOf: ({ host }: Registry) => host,
  input: ({ host }) => ({ params: { host } }),
  warning: "Builds can pull no private image from there any more.",
});

export function AddRegistry() {
  return (
    <ActionDialog
      row="registries.set"
      title="Add a registry"
      submit="Add"
      input={(form) => ({
        params: { host: textOf(form, "host").trim() },
        body: { username: textOf(form, "username").trim(), password: textOf(form, "password") },
      })}
    >
      <TextField
        name="host"
        label="Host"
        hint="Docker Hub is docker.io."
        required
        maxLength={255}
        placeholder="ghcr.io"
      />
      <TextField name="username" label="User" required maxLength={255} autoComplete="off" />
      <TextField
        name="password"
        label="Password or access token"
        type="password"
        required
        autoComplete="new-password"
      />
    </ActionDialog>
  );
}
