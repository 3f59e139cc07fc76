import { signOut } from "../../data/session.ts";
import { Button } from "../../ui/button.tsx";
import { Entrance } from "./entrance.tsx";

export type Reason = "expired" | "suspended" | "unreachable";

const texts: Record<Reason, readonly [string, string]> = {
  expired: [
    "Your session has ended",
    "The token you signed in with has expired or was revoked. Sign in with another one; nothing that runs is affected.",
  ],
  suspended: [
    "This organization is suspended",
    "The platform's operator has suspended it: its applications, cron jobs and tokens do not work, and nothing is deleted. Ask the operator to enable it again.",
  ],
  unreachable: [
    "The platform does not answer",
    "Applications may still be running: only the control plane is unreachable. Check that it runs and that this computer is online.",
  ],
};

/** Shows why the dashboard can show nothing at the moment, and the one thing to do. */
export function Standstill({ reason }: { readonly reason: Reason }) {
  const [title, text] = texts[reason];
  return (
    <Entrance title={title}>
      <p className="mb-6 text-muted">{text}</p>
      {reason === "unreachable" ? (
        <Button look="primary" onClick={() => location.reload()}>
          Try again
        </Button>
      ) : (
        <Button look="primary" onClick={() => void signOut()}>
          Sign in with another token
        </Button>
      )}
    </Entrance>
  );
}
