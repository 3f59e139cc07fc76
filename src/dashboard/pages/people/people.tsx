import { Pencil, UserPlus } from "lucide-react";
import { useState } from "react";
import { useCall, useMe, useWhyNot } from "../../data/api.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { DialogButton, DialogIconButton } from "../../ui/button.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Section, Empty } from "../../ui/page.tsx";
import { createRemoval, ActionDialog } from "../../ui/action-dialog.tsx";
import { Invitations } from "./invitations.tsx";
import { NameAndEmail } from "./name-and-email.tsx";
import { Rights, type Member } from "./rights.tsx";
import { textOf, TextField } from "../../ui/field.tsx";
import { roles, type Role } from "../../../contract/access.ts";
import { Choice } from "../../ui/choice.tsx";
import { SomeProjects } from "../tokens/several.tsx";

/** Lists the people of the organization, and its open invitations. */
export function People() {
  const members = useCall("people.list", {});
  return (
    <Section
      title="People"
      lead="Each signs in with a passkey of their own, and is named in the activity."
      actions={
        <DialogButton icon={<UserPlus size={15} />} row="people.invite" dialog={<Invite />}>
          Invite a person
        </DialogButton>
      }
    >
      <OwnAccount />
      <List
        of={members}
        caption="People"
        rows={(data) => data.members}
        columns={columns}
        keyOf={({ id }) => id}
        empty={
          <Empty title="Nobody has an account here yet" command="berth members invite">
            An invitation is a link for one person.
          </Empty>
        }
      />
      <Invitations />
    </Section>
  );
}

const removal = createRemoval({
  row: "people.remove",
  title: "Remove a person",
  nameOf: ({ name }: Member) => name,
  input: ({ id }) => ({ params: { id } }),
  warning: "Their sessions, and the tokens and SSH keys that they created here, end within a second.",
});

/** Offers an account to an owner who is signed in with a token. */
function OwnAccount() {
  const { person, platform_admin: admin } = useMe();
  if (person !== null || useWhyNot("people.invite") !== undefined) return null;
  return (
    <div className="mb-4 flex flex-wrap items-center gap-3 rounded-md border border-line bg-panel px-4 py-3 text-sm">
      <p className="min-w-56 flex-1">You are signed in with a token. With an account you sign in with a passkey.</p>
      <ActionButton
        row="people.invite"
        label="Make an account for yourself"
        input={{ body: { role: "owner", ...(admin && { platform_admin: true }) } }}
        onDone={({ url }) => location.assign(url ?? "/")}
      />
    </div>
  );
}

const columns: readonly Column<Member>[] = [
  { head: "Name", grow: true, cell: (member) => <NameAndEmail of={member} /> },
  { head: "Role", cell: (member) => <Rights of={member} /> },
  timeColumn("Last used", (row) => row.last_used_at, { none: "never" }),
  {
    head: "",
    end: true,
    cell: (member) => (
      <span className="inline-flex">
        <DialogIconButton label={`Change ${member.name}`} row="people.update" dialog={<ChangeMember member={member} />}>
          <Pencil size={15} />
        </DialogIconButton>
        {removal.button(member)}
      </span>
    ),
  },
];

/** Changes a person's role and projects. */
function ChangeMember({ member }: { readonly member: Member }) {
  const { fields, role, projects } = useRights(member);
  return (
    <ActionDialog
      row="people.update"
      title={`Change the rights of ${member.name}`}
      submit="Change"
      input={() => ({ params: { id: member.id }, body: { role, projects: projects && [...projects] } })}
    >
      {fields}
      <p className="text-sm text-muted">
        It takes effect within a second. Tokens that the person created keep at most what the person has then.
      </p>
    </ActionDialog>
  );
}

/** Makes an invitation, and shows its link once. */
function Invite() {
  const { fields, role, projects } = useRights({ role: "member", projects: null });
  const input = (form: FormData) => {
    const email = textOf(form, "email").trim();
    return {
      body: { role, ...(projects === null ? {} : { projects: [...projects] }), ...(email === "" ? {} : { email }) },
    };
  };
  return (
    <ActionDialog
      row="people.invite"
      title="Invite a person"
      submit="Invite"
      input={input}
      secret={{
        title: "The invitation",
        of: ({ url }) => url,
        note: ({ url, email, mail_problem: problem }) =>
          url === null
            ? `The link was mailed to ${email}. It works once, within seven days.`
            : `${problem === null ? "" : `No mail could be sent: ${problem} `}Send this link to one person.`,
      }}
    >
      {fields}
      <TextField
        name="email"
        label="E-mail address (optional)"
        type="email"
        hint="The link goes there, if the platform has a mail server; else it is shown, and you send it. It works once within seven days."
        maxLength={254}
      />
    </ActionDialog>
  );
}

interface Chosen {
  readonly role: Role;
  readonly projects: readonly string[] | null;
}

/** The fields for a person's rights, and what is chosen in them. */
function useRights(first: Chosen) {
  const [role, setRole] = useState(first.role);
  const [within, setWithin] = useState(first.projects);
  const fields = (
    <>
      <div className="flex flex-col gap-1.5">
        <span className="text-sm font-medium">Role</span>
        <Choice label="Role" options={roles} value={role} onChange={setRole} />
      </div>
      {role === "member" && <SomeProjects chosen={within} onChange={setWithin} />}
    </>
  );
  return { fields, role, projects: role === "member" ? within : null };
}
