import { ActionDialog } from "../../ui/action-dialog.tsx";
import { useRights } from "./use-rights.tsx";
import type { Member } from "./rights.tsx";

/** Changes a person's role and projects. */
export function ChangeMember({ member, onClose }: { readonly member: Member; readonly onClose: () => void }) {
  const { fields, role, projects } = useRights(member);
  return (
    <ActionDialog
      row="people.update"
      title={`Change the rights of ${member.name}`}
      submit="Change"
      input={() => ({ params: { id: member.id }, body: { role, projects: projects && [...projects] } })}
      onClose={onClose}
    >
      {fields}
      <p className="text-sm text-muted">
        It takes effect within a second. Tokens that the person created keep at most what the person has then.
      </p>
    </ActionDialog>
  );
}
