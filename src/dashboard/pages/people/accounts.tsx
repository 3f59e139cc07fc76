import type { Answer } from "../../../contract/client.ts";
import { useCall, useMe } from "../../data/api.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { ActionDialog, ConfirmAction } from "../../ui/action-dialog.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Section, Empty } from "../../ui/page.tsx";
import { Status, Plain } from "../../ui/text.tsx";
import { NameAndEmail } from "./name-and-email.tsx";

type Account = Answer<"people.accounts">["accounts"][number];

/** Lists the people of all organizations, for the platform's operator. */
export function Accounts() {
  const accounts = useCall("people.accounts", {});
  return (
    <Section
      title="People"
      lead="Of all organizations. Owners invite and remove them; you disable an account everywhere, or rescue it."
    >
      <List
        of={accounts}
        caption="People of all organizations"
        rows={(data) => data.accounts}
        keyOf={({ id }) => id}
        columns={columns}
        phone={(account) => <Item account={account} />}
        empty={
          <Empty title="Nobody has an account here yet" command="berth members invite">
            An owner invites each person by a link.
          </Empty>
        }
      />
    </Section>
  );
}

const columns: readonly Column<Account>[] = [
  { head: "State", cell: (account) => <StateOf account={account} /> },
  { head: "Name", grow: true, cell: (account) => <NameAndEmail of={account} /> },
  { head: "Organizations", wide: true, cell: (account) => organizationsOf(account) },
  timeColumn("Last used", (row) => row.last_used_at, { none: "never" }),
  { head: "", end: true, cell: (account) => <Actions account={account} /> },
];

const organizationsOf = ({ organizations }: Account) => organizations.join(", ") || "none";

interface OfAccount {
  readonly account: Account;
}

function StateOf({ account: { disabled_at: at, can_sign_in: can } }: OfAccount) {
  if (at !== null) return <Status tone="off">Disabled</Status>;
  return can ? <Status tone="ok">Active</Status> : <Status tone="warn">Cannot sign in</Status>;
}

function Item({ account }: OfAccount) {
  return (
    <>
      <p className="flex items-center justify-between gap-3">
        <Plain className="min-w-0 truncate font-medium">{account.name}</Plain>
        <StateOf account={account} />
      </p>
      <p className="truncate text-muted">{organizationsOf(account)}</p>
      <div className="-mx-3 -mb-1.5">
        <Actions account={account} />
      </div>
    </>
  );
}

function Actions({ account }: OfAccount) {
  const { id, disabled_at: at, organizations } = account;
  const own = useMe().person?.id === id;
  const whyNoLink =
    at !== null ? "Enable the account first." : organizations.length === 0 ? "It is in no organization." : undefined;
  return (
    <span className="inline-flex">
      <DialogButton look="quiet" row="people.link" why={whyNoLink} dialog={<MakeLink account={account} />}>
        Sign-in link
      </DialogButton>
      {at === null ? (
        <DialogButton
          look="quiet"
          row="people.disable"
          why={own ? "This is your own account." : undefined}
          dialog={<Disable account={account} />}
        >
          Disable
        </DialogButton>
      ) : (
        <ActionButton look="quiet" row="people.enable" label="Enable" input={{ params: { id } }} />
      )}
    </span>
  );
}

/** Makes a link that signs a person in, and shows it once. */
function MakeLink({ account }: OfAccount) {
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
    >
      For somebody who lost every other way to sign in. Whoever opens it acts as this person.
    </ActionDialog>
  );
}

function Disable({ account }: OfAccount) {
  return (
    <ConfirmAction
      row="people.disable"
      title="Disable an account"
      submit="Disable"
      typed={account.name}
      input={{ params: { id: account.id } }}
    >
      The person's sessions, tokens, SSH keys and invitations end within a second in all organizations. Enabling lets
      them sign in again; what ended stays ended.
    </ConfirmAction>
  );
}
