import { Pencil, UserPlus } from "lucide-react";
import { useState } from "react";
import { useAction, useCall } from "../../data/api.ts";
import { useMe, useWhyNot } from "../../data/me.ts";
import { ConfirmAction } from "../../ui/action-dialog.tsx";
import { Button, IconButton, RemoveButton } from "../../ui/button.tsx";
import { List } from "../../ui/list.tsx";
import { Section } from "../../ui/page.tsx";
import { Problem } from "../../ui/problem.tsx";
import { timeColumn, type Column } from "../../ui/table.tsx";
import { Empty } from "../../ui/view.tsx";
import { ChangeMember } from "./change-member.tsx";
import { Invitations } from "./invitations.tsx";
import { Invite } from "./invite.tsx";
import { NameAndEmail } from "./name-and-email.tsx";
import { Rights, type Member } from "./rights.tsx";

/** Lists the people of the organization, and its open invitations. */
export function People() {
  const members = useCall("people.list", {});
  const [inviting, setInviting] = useState(false);
  const [changing, setChanging] = useState<Member>();
  const [removing, setRemoving] = useState<Member>();
  return (
    <Section
      title="People"
      lead="Each signs in with a passkey of their own, and is named in the activity."
      actions={
        <Button icon={<UserPlus size={15} />} row="people.invite" onClick={() => setInviting(true)}>
          Invite a person
        </Button>
      }
    >
      <OwnAccount />
      <List
        of={members}
        caption="People"
        rows={(data) => data.members}
        columns={columnsFor(setChanging, setRemoving)}
        keyOf={({ id }) => id}
        empty={
          <Empty title="Nobody has an account here yet" command="berth members invite">
            An invitation is a link for one person.
          </Empty>
        }
      />
      <Invitations />
      {inviting && <Invite onClose={() => setInviting(false)} />}
      {changing !== undefined && <ChangeMember member={changing} onClose={() => setChanging(undefined)} />}
      {removing !== undefined && (
        <ConfirmAction
          row="people.remove"
          title="Remove a person"
          submit="Remove"
          typed={removing.name}
          input={{ params: { id: removing.id } }}
          onClose={() => setRemoving(undefined)}
        >
          Their sessions, and the tokens and SSH keys that they created here, end within a second.
        </ConfirmAction>
      )}
    </Section>
  );
}

/** Offers an account to an owner who is signed in with a token. */
function OwnAccount() {
  const { person, platform_admin: admin } = useMe();
  const invite = useAction("people.invite");
  if (person !== null || useWhyNot("people.invite") !== undefined) return null;
  const body = { role: "owner", ...(admin && { platform_admin: true }) } as const;
  const begin = () => invite.mutate({ body }, { onSuccess: ({ url }) => location.assign(url ?? "/") });
  return (
    <div className="mb-4 flex flex-wrap items-center gap-3 rounded-md border border-line bg-panel px-4 py-3 text-sm">
      <p className="min-w-56 flex-1">You are signed in with a token. With an account you sign in with a passkey.</p>
      <Button busy={invite.isPending} onClick={begin}>
        Make an account for yourself
      </Button>
      {invite.error !== null && <Problem error={invite.error} />}
    </div>
  );
}

type Choose = (member: Member) => void;

function columnsFor(onChange: Choose, onRemove: Choose): readonly Column<Member>[] {
  return [
    {
      head: "Name",
      grow: true,
      cell: (member) => <NameAndEmail of={member} />,
    },
    { head: "Role", cell: (member) => <Rights of={member} /> },
    timeColumn("Last used", (row) => row.last_used_at, { none: "never" }),
    {
      head: "",
      end: true,
      cell: (member) => (
        <span className="inline-flex">
          <IconButton label={`Change ${member.name}`} row="people.update" onClick={() => onChange(member)}>
            <Pencil size={15} />
          </IconButton>
          <RemoveButton row="people.remove" label={`Remove ${member.name}`} onClick={() => onRemove(member)} />
        </span>
      ),
    },
  ];
}
