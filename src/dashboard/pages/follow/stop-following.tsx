import { ConfirmAction } from "../../ui/action-dialog.tsx";

/** Stops following after the user has typed the project's name. */
export function StopFollowing({ slug, onClose }: { readonly slug: string; readonly onClose: () => void }) {
  return (
    <ConfirmAction
      row="follow.delete"
      title="Stop following"
      submit="Stop following"
      typed={slug}
      input={{ params: { slug } }}
      onClose={onClose}
    >
      Deploy key, access token, the webhook's secret and the list of deliveries are deleted. What is live stays.
    </ConfirmAction>
  );
}
