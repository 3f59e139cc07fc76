import { CircleAlert } from "lucide-react";
import { ApiError, ConnectionError } from "../../contract/client.ts";
import { visible } from "../data/format.ts";
import { Button } from "./button.tsx";
import { Command } from "./copy.tsx";
import { Prose } from "./text.tsx";

/** Shows what went wrong, what helps, and the id by which the operator finds the request. */
export function Problem({ error, retry }: { readonly error: Error; readonly retry?: () => void }) {
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
        {approval !== undefined && (
          <div className="mt-2 space-y-1.5">
            <p className="text-muted">
              A person decides; repeat the same step once it is approved. Watch it here or with:
            </p>
            <Command>{`berth approvals ${approval.id}`}</Command>
          </div>
        )}
        {error instanceof ApiError && error.requestId !== null && error.status >= 500 && (
          <p className="mt-1 font-mono text-xs text-faint">Request {error.requestId}</p>
        )}
      </div>
      {retry !== undefined && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}
