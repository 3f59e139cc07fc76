import type { ReactNode } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { Ago, Fact, Mono } from "../../ui/text.tsx";

export type Deployment = Answer<"deployments.list">["deployments"][number];

interface RollbackProps {
  readonly slug: string;
  readonly target: Deployment;
  readonly onClose: () => void;
  /** Above what changes. */
  readonly children?: ReactNode;
}

/** What goes back and what stays, before one button with the number in it. */
export function RollbackDialog({ slug, target, onClose, children }: RollbackProps) {
  const project = useCall("projects.get", { params: { slug } });
  const env = useCall("env.list", { params: { slug } });
  const active = project.data?.active_deployment;
  const since = target.activated_at ?? target.created_at;
  const changed = (env.data?.variables ?? [])
    .filter(({ system, updated_at: at }) => !system && at !== null && at > since)
    .map(({ key }) => key);
  return (
    <ActionDialog
      row="deployments.rollback"
      title="Roll back"
      submit={`Roll back to #${target.number}`}
      input={() => ({ params: { slug }, body: { deployment: target.number } })}
      onClose={onClose}
    >
      {children}
      <dl className="grid grid-cols-2 gap-4">
        <Fact label="From">
          {active === null || active === undefined ? "nothing" : `#${active.number}`}{" "}
          {active?.commit && <Mono>{active.commit.slice(0, 7)}</Mono>}
        </Fact>
        <Fact label="To">
          #{target.number} <Mono>{target.commit.slice(0, 7)}</Mono> · <Ago at={since} />
        </Fact>
        <Fact label="Code">
          {active?.commit === target.commit ? "the same commit" : "the image of that commit, without a build"}
        </Fact>
        <Fact label="Variables">
          {changed.length === 0 ? (
            "as they were then; none was changed since"
          ) : (
            <>
              as they were then; changed since: <Mono>{changed.join(", ")}</Mono>
            </>
          )}
        </Fact>
        <Fact label="Domains">untouched</Fact>
        <Fact label="Database and storage">untouched</Fact>
      </dl>
      <p className="text-sm text-muted">
        It becomes a new deployment: started beside the present one, checked for health, then switched to. If it does
        not become healthy, nothing changes.
      </p>
    </ActionDialog>
  );
}
