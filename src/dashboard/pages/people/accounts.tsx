import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useAction, useCall, useMe } from "../../data/api.ts";
import { ActionDialog, ConfirmAction } from "../../ui/action-dialog.tsx";
import { Button } from "../../ui/button.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Section, Empty, Problem } from "../../ui/page.tsx";
import { Status, Plain } from "../../ui/text.tsx";
import { NameAndEmail } from "./name-and-email.tsx";

type Account = Answer<"people.accounts">["accounts"][number];
type Open = { readonly kind: "link" | "disable"; readonly account: Account };

/** Lists the people of all organizations, for the platform's operator. */
export function Accounts() {
  const accounts = useCall("people.accounts", {});
  const enable = useAction("people.enable");
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const doing = { onOpen: setOpen, onEnable: (id: string) => enable.mutate({ params: { id } }) };
  return (
    <Section
      title="People"
      lead="Of all organizations. Owners invite and remove them; you disable an account everywhere, or rescue it."
    >
      {enable.error !== null && <Problem error={enable.error} />}
      <List
        of={accounts}
        caption="People of all organizations"
        rows={(data) => data.accounts}
        keyOf={({ id }) => id}
        columns={columnsFor(doing)}
        phone={(account) => <Item account={account} {...doing} />}
        empty={
          <Empty title="Nobody has an account here yet" command="berth members invite">
            An owner invites each person by a link.
          </Empty>
        }
      />
      {open?.kind === "link" && <MakeLink account={open.account} onClose={close} />}
      {open?.kind === "disable" && <Disable account={open.account} onClose={close} />}
    </Section>
  );
}

interface Doing {
  readonly onOpen: (open: Open) => void;
  readonly onEnable: (id: string) => void;
}

function columnsFor(doing: Doing): readonly Column<Account>[] {
  return [
    { head: "State", cell: (account) => <StateOf account={account} /> },
    { head: "Name", grow: true, cell: (account) => <NameAndEmail of={account} /> },
    { head: "Organizations", wide: true, cell: (account) => organizationsOf(account) },
    timeColumn("Last used", (row) => row.last_used_at, { none: "never" }),
    { head: "", end: true, cell: (account) => <Actions account={account} {...doing} /> },
  ];
}

const organizationsOf = ({ organizations }: Account) => organizations.join(", ") || "none";

function StateOf({ account: { disabled_at: at, can_sign_in: can } }: { readonly account: Account }) {
  if (at !== null) return <Status tone="off">Disabled</Status>;
  return can ? <Status tone="ok">Active</Status> : <Status tone="warn">Cannot sign in</Status>;
}

function Item({ account, ...doing }: Doing & { readonly account: Account }) {
  return (
    <>
      <p className="flex items-center justify-between gap-3">
        <Plain className="min-w-0 truncate font-medium">{account.name}</Plain>
        <StateOf account={account} />
      </p>
      <p className="truncate text-muted">{organizationsOf(account)}</p>
      <div className="-mx-3 -mb-1.5">
        <Actions account={account} {...doing} />
      </div>
    </>
  );
}

function Actions({ account, onOpen, onEnable }: Doing & { readonly account: Account }) {
  const { id, disabled_at: at, organizations } = account;
  const own = useMe().person?.id === id;
  const whyNoLink =
    at !== null ? "Enable the account first." : organizations.length === 0 ? "It is in no organization." : undefined;
  return (
    <span className="inline-flex">
      <Button
        look="quiet"
        className="h-7"
        row="people.link"
        why={whyNoLink}
        onClick={() => onOpen({ kind: "link", account })}
      >
        Sign-in link
      </Button>
      {at === null ? (
        <Button
          look="quiet"
          className="h-7"
          row="people.disable"
          why={own ? "This is your own account." : undefined}
          onClick={() => onOpen({ kind: "disable", account })}
        >
          Disable
        </Button>
      ) : (
        <Button look="quiet" className="h-7" row="people.enable" onClick={() => onEnable(id)}>
          Enable
        </Button>
      )}
    </span>
  );
}

interface OfAccount {
  readonly account: Account;
  readonly onClose: () => void;
}

/** Makes a link that signs a person in, and shows it once. */
function MakeLink({ account, onClose }: OfAccount) {
  return (
    <ActionDialog
      row="people.link"
      title={`A sign-in link for ${account.name}`}
      submit="Make the link"
      input={() => ({ params: { id: account.id } })}
      secret={{
        title: "The sign-in link",
        of: ({ url }) => url,
        note: () => "Hand it to this person alone. It works once, within 15 minutes, and lets them add a passkey.",
      }}
      onClose={onClose}
    >
      For somebody who lost every other way to sign in. Whoever opens it acts as this person.
    </ActionDialog>
  );
}

function Disable({ account, onClose }: OfAccount) {
  return (
    <ConfirmAction
      row="people.disable"
      title="Disable an account"
      submit="Disable"
      typed={account.name}
      input={{ params: { id: account.id } }}
      onClose={onClose}
    >
      The person's sessions, tokens, SSH keys and invitations end within a second in all organizations. Enabling lets
      them sign in again; what ended stays ended.
    </ConfirmAction>
  );
}
