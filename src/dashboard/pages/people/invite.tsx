import { textOf } from "../../data/text-of.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { TextField } from "../../ui/field.tsx";
import { useRights } from "./use-rights.tsx";

/** Makes an invitation, and shows its link once. */
export function Invite({ onClose }: { readonly onClose: () => void }) {
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
      onClose={onClose}
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
