import { ConfirmAction } from "../../ui/action-dialog.tsx";

/** Ends following, once the project's name is typed. */
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
