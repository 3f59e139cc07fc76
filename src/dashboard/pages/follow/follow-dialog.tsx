import type { Answer } from "../../../contract/client.ts";
import { useAction, useWhyNot } from "../../data/api.ts";
import { FormDialog } from "../../ui/action-dialog.tsx";
import { FollowFields, followIn } from "./follow-fields.tsx";
import { NextSteps } from "./next-steps.tsx";

interface FollowDialogProps {
  readonly slug: string;
  /** What the project follows now; null if nothing. */
  readonly of: Answer<"follow.get"> | null;
  readonly onClose: () => void;
}

/** Sets the branch to follow, then shows what to configure at the repository's host. */
export function FollowDialog({ slug, of, onClose }: FollowDialogProps) {
  const follow = useAction("follow.set");
  const why = useWhyNot("follow.set");
  if (follow.data !== undefined) return <NextSteps made={follow.data} onClose={onClose} />;
  return (
    <FormDialog
      title={of === null ? "Follow a repository" : "Follow another branch"}
      submit="Follow"
      why={why}
      onSubmit={(form) => follow.mutateAsync({ params: { slug }, body: followIn(form) })}
      onClose={onClose}
    >
      <FollowFields of={of} />
    </FormDialog>
  );
}
