import { Link } from "@tanstack/react-router";
import { CircleAlert } from "lucide-react";
import { ApiError, ConnectionError, type Answer } from "../../contract/client.ts";
import { useCall } from "../data/api.ts";
import { visible } from "../data/format.ts";
import { Button } from "./button.tsx";
import { Command } from "./copy.tsx";
import { Status, type Tone } from "./status.tsx";
import { Prose } from "./text.tsx";

interface ProblemProps {
  readonly error: Error;
  readonly retry?: () => void;
  readonly isRetrying?: boolean;
}

/** Shows what went wrong, what helps, and the id by which the operator finds the request. */
export function Problem({ error, retry, isRetrying = false }: ProblemProps) {
  const hint = error instanceof ApiError || error instanceof ConnectionError ? error.hint : undefined;
  const details = error instanceof ApiError ? error.details : [];
  const approval =
    error instanceof ApiError ? (error.body["approval"] as { readonly id: string } | undefined) : undefined;
  return (
    <div role="alert" className="flex gap-3 rounded-md border border-bad/35 bg-bad/7 px-3 py-2.5 text-sm">
      <CircleAlert aria-hidden size={16} className="mt-px shrink-0 text-bad" />
      <div className="min-w-0 flex-1">
        <p className="font-medium break-words">
          <Prose>{error.message}</Prose>
        </p>
        {hint !== undefined && (
          <p className="mt-1 text-muted">
            <Prose>{hint}</Prose>
          </p>
        )}
        {details.length > 1 && (
          <ul className="mt-1 list-disc pl-4 text-muted">
            {details.map(({ path, message }) => (
              <li key={`${path} ${message}`}>{visible(`${path}: ${message}`)}</li>
            ))}
          </ul>
        )}
        {approval !== undefined && <AwaitedApproval id={approval.id} />}
        {error instanceof ApiError && error.requestId !== null && error.status >= 500 && (
          <p className="mt-1 font-mono text-xs text-faint">Request {error.requestId}</p>
        )}
      </div>
      {retry !== undefined && (
        <Button busy={isRetrying} onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

type Approval = Answer<"approvals.get">;

const states: Record<Approval["status"], readonly [Tone, string, string]> = {
  pending: ["busy", "Waiting", "A person decides. Leave this open, or come back and repeat the step."],
  approved: ["ok", "Approved", "Repeat the same step now: it goes through this once."],
  denied: ["bad", "Denied", "Nothing was changed."],
  expired: ["off", "Expired", "Nobody decided in time. Repeat the step to ask again."],
  consumed: ["ok", "Done", "The approved step was carried out."],
};
const pollMs = 3000;

/** Shows the decision that a step waits for, as soon as it is made. */
function AwaitedApproval({ id }: { readonly id: string }) {
  // A token without `activity:read` gets no changes.
  const poll = (found: Approval | undefined) => (found === undefined || found.status === "pending" ? pollMs : false);
  const { data } = useCall("approvals.get", { params: { id } }, { pollMs: poll });
  const [tone, word, text] = states[data?.status ?? "pending"];
  return (
    <div className="mt-2 flex flex-col gap-1.5">
      <p role="status" className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Status tone={tone}>{word}</Status>
        <span className="text-muted">{text}</span>
      </p>
      <p className="text-muted">
        It stands in{" "}
        <Link to="/approvals" className="text-accent underline underline-offset-2">
          Approvals
        </Link>
        , and here:
      </p>
      <Command>{`berth approvals ${id}`}</Command>
    </div>
  );
}
