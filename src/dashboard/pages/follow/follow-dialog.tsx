import type { Answer } from "../../../contract/client.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { useOpenDialog } from "../../ui/dialogs.tsx";
import { FollowFields, followIn } from "./follow-fields.tsx";
import { NextSteps } from "./next-steps.tsx";

interface FollowDialogProps {
  readonly slug: string;
  /** What the project follows now; null if nothing. */
  readonly of: Answer<"follow.get"> | null;
}

/** Sets the branch to follow, then shows what to configure at the repository's host. */
export function FollowDialog({ slug, of }: FollowDialogProps) {
  const openDialog = useOpenDialog();
  return (
    <ActionDialog
      row="follow.set"
      title={of === null ? "Follow a repository" : "Follow another branch"}
      submit="Follow"
      input={(form) => ({ params: { slug }, body: followIn(form) })}
      onDone={(made) => openDialog(<NextSteps made={made} />)}
    >
      <FollowFields of={of} />
    </ActionDialog>
  );
}
