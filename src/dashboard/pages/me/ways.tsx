import { useQueryClient } from "@tanstack/react-query";
import { Pencil, Plus } from "lucide-react";
import { useEffect, useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall, useMe } from "../../data/api.ts";
import { addPasskey, hasPasskeys, offeredProviders, type OfferedProvider } from "../../data/sign-in.ts";
import { textOf, TextField } from "../../ui/field.tsx";
import { ActionDialog, FormDialog, createRemoval } from "../../ui/action-dialog.tsx";
import { DialogButton, DialogIconButton } from "../../ui/button.tsx";
import { useDialog } from "../../ui/dialogs.tsx";
import { List, timeColumn } from "../../ui/table.tsx";
import { Section, Empty } from "../../ui/page.tsx";
import { Plain } from "../../ui/text.tsx";
import { ByProvider } from "./by-provider.tsx";

type Passkey = Answer<"me.passkeys">["passkeys"][number];
type Identity = Answer<"me.identities">["identities"][number];

/** Shows how a person signs in: passkeys, and accounts at identity providers. */
export function Ways() {
  const [providers, setProviders] = useState<readonly OfferedProvider[]>([]);
  useEffect(() => void offeredProviders().then(setProviders), []);
  return (
    <>
      <Passkeys />
      <Identities providers={providers} />
    </>
  );
}

const passkeyRemoval = createRemoval({
  row: "me.delete_passkey",
  title: "Delete a passkey",
  verb: "Delete",
  nameOf: ({ name }: Passkey) => name,
  input: ({ id }) => ({ params: { id } }),
  warning: "It no longer signs you in. Remove it on your computer or phone as well.",
});

function Passkeys() {
  const passkeys = useCall("me.passkeys", {});
  return (
    <Section
      title="Passkeys"
      lead="Your computer or phone keeps each. Have two, so that a lost one does not lock you out."
      actions={
        <DialogButton
          icon={<Plus size={15} />}
          why={hasPasskeys ? undefined : "Browsers offer passkeys over HTTPS and on localhost only."}
          dialog={<AddPasskey />}
        >
          Add a passkey
        </DialogButton>
      }
    >
      <List
        of={passkeys}
        caption="Passkeys"
        rows={(data) => data.passkeys}
        keyOf={({ id }) => id}
        empty={<Empty title="No passkeys yet">With one you sign in by a touch.</Empty>}
        columns={[
          {
            head: "Passkey",
            grow: true,
            cell: ({ name, usable }) => (
              <Plain>{usable ? name : `${name} (belongs to an earlier address of this platform)`}</Plain>
            ),
          },
          timeColumn("Added", (row: Passkey) => row.created_at),
          timeColumn("Last used", (row: Passkey) => row.last_used_at, { none: "never" }),
          {
            head: "",
            end: true,
            cell: (passkey) => (
              <span className="inline-flex">
                <DialogIconButton
                  label={`Name ${passkey.name}`}
                  row="me.rename_passkey"
                  dialog={<NamePasskey passkey={passkey} />}
                >
                  <Pencil size={15} />
                </DialogIconButton>
                {passkeyRemoval.button(passkey)}
              </span>
            ),
          },
        ]}
      />
    </Section>
  );
}

function NamePasskey({ passkey: { id, name } }: { readonly passkey: Passkey }) {
  return (
    <ActionDialog
      row="me.rename_passkey"
      title="Name the passkey"
      submit="Save"
      input={(form) => ({ params: { id }, body: { name: textOf(form, "name").trim() } })}
    >
      <TextField name="name" label="Name" defaultValue={name} maxLength={100} required />
    </ActionDialog>
  );
}

function AddPasskey() {
  const { finish } = useDialog();
  const queries = useQueryClient();
  const add = async (form: FormData) => {
    await addPasskey(textOf(form, "name").trim());
    finish();
    await queries.invalidateQueries();
  };
  return (
    <FormDialog title="Add a passkey" submit="Create it" onSubmit={add}>
      <TextField
        name="name"
        label="Name"
        hint="Of the computer, phone or key that keeps it."
        maxLength={100}
        required
      />
    </FormDialog>
  );
}

const identityRemoval = createRemoval({
  row: "me.unlink_identity",
  title: "Unlink an account",
  verb: "Unlink",
  nameOf: ({ label }: Identity) => label,
  input: ({ id }) => ({ params: { id } }),
  warning: "It no longer signs you in.",
});

function Identities({ providers }: { readonly providers: readonly OfferedProvider[] }) {
  const identities = useCall("me.identities", {});
  const { person } = useMe();
  const own = identities.data?.identities ?? [];
  if (providers.length === 0 && own.length === 0) return null;
  const toProve = providers.filter(({ name }) => own.some(({ provider }) => provider === name));
  return (
    <Section
      title="Accounts at providers"
      lead={`Whoever holds one of them signs in as ${person?.name ?? "you"}.`}
      actions={
        <span className="flex flex-wrap gap-2">
          <ByProvider providers={providers} wish={{ to: "link" }} verb="Link" />
        </span>
      }
    >
      <List
        of={identities}
        caption="Accounts at providers"
        rows={(data) => data.identities}
        keyOf={({ id }) => id}
        empty={<Empty title="None linked">You sign in with your passkeys.</Empty>}
        columns={[
          { head: "Provider", cell: ({ provider, issuer }) => <Plain>{provider ?? `${issuer} (removed)`}</Plain> },
          { head: "Account", grow: true, cell: ({ label }) => <Plain>{label}</Plain> },
          timeColumn("Last used", (row: Identity) => row.last_used_at),
          identityRemoval.column,
        ]}
      />
      {toProve.length > 0 && (
        <p className="flex flex-wrap items-center gap-2 text-sm text-muted">
          Without a passkey, prove that it is you before you invite people or delete a way to sign in:
          <ByProvider providers={toProve} wish={{ to: "prove" }} verb="Sign in again with" />
        </p>
      )}
    </Section>
  );
}
