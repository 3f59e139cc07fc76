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
      submit="Make the link"
      input={input}
      secret={{ title: "Send this link to one person", of: ({ url }) => url }}
      onClose={onClose}
    >
      {fields}
      <TextField
        name="email"
        label="E-mail address (optional)"
        type="email"
        hint="Shown in the list. Berth sends nothing: you send the link, which works once within seven days."
        maxLength={254}
      />
    </ActionDialog>
  );
}
