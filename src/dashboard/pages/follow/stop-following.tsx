import { ConfirmAction } from "../../ui/action-dialog.tsx";

/** Stops following after the user has typed the project's name. */
export function StopFollowing({ slug }: { readonly slug: string }) {
  return (
    <ConfirmAction
      row="follow.delete"
      title="Stop following"
      submit="Stop following"
      typed={slug}
      input={{ params: { slug } }}
    >
      Deploy key, access token, the webhook's secret and the list of deliveries are deleted. What is live stays.
    </ConfirmAction>
  );
}
