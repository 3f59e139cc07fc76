import { useState } from "react";
import { useCall } from "../data/api.ts";
import { firstLine } from "../data/format.ts";
import { FollowDialog } from "../pages/follow/follow-dialog.tsx";
import { ActionDialog } from "../ui/action-dialog.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Plain } from "../ui/text.tsx";
import type { OfProject } from "./actions.ts";
import { plainAction, useDone } from "./plain-action.tsx";

export const Deploy = plainAction({
  row: "deployments.create",
  title: (slug) => `Deploy ${slug} again`,
  submit: "Deploy again",
  input: (slug) => ({ params: { slug }, body: {} }),
  text: "The newest commit is built and started beside the present deployment, checked for health, then switched to.",
  to: "deployments",
});

export function Cancel(props: OfProject) {
  const { slug, onClose } = props;
  const done = useDone(props);
  const { data } = useCall("builds.list", { params: { slug } });
  const newest = data?.builds[0];
  if (data === undefined) return null;
  if (newest === undefined)
    return (
      <Dialog title="Cancel the running deployment" onClose={onClose}>
        <p className="text-sm text-muted">Nothing was pushed yet.</p>
      </Dialog>
    );
  return (
    <ActionDialog
      row="builds.cancel"
      title="Cancel the running deployment"
      submit={`Cancel build ${newest.number}`}
      look="danger"
      input={() => ({ params: { id: newest.id } })}
      onDone={() => done("deployments")}
      onClose={onClose}
    >
      <p className="text-sm text-muted">
        <Plain>{firstLine(newest.message)}</Plain>: what is live goes on.
      </p>
    </ActionDialog>
  );
}

/** Follows a repository, or changes what is followed. A refresh must not replace the dialog while it shows the secret, once. */
export function Follow({ slug, onClose }: OfProject) {
  const { data: project } = useCall("projects.get", { params: { slug } });
  const [follows, setFollows] = useState<boolean>();
  if (project !== undefined && follows === undefined) setFollows(project.follows);
  const { data: followed } = useCall("follow.get", { params: { slug } }, { enabled: follows === true });
  if (follows === undefined || (follows && followed === undefined)) return null;
  return <FollowDialog slug={slug} of={follows ? (followed ?? null) : null} onClose={onClose} />;
}

export const Fetch = plainAction({
  row: "follow.fetch",
  title: () => "Fetch the followed repository",
  submit: "Fetch now",
  input: (slug) => ({ params: { slug }, body: {} }),
  text: "If the branch points at another commit by now, that is deployed.",
  to: "settings",
});
