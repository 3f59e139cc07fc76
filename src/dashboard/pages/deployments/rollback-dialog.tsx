import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { firstLine, plural, shortCommit } from "../../data/format.ts";
import { commitsBetween } from "./commits-between.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { Ago, Fact, Mono, Plain } from "../../ui/text.tsx";

export type Deployment = Answer<"deployments.list">["deployments"][number];

interface RollbackProps {
  readonly slug: string;
  readonly target: Pick<Deployment, "number" | "commit" | "created_at" | "activated_at">;
  /** The field by which the target is chosen. */
  readonly choice?: ReactNode;
}

/** Shows what a rollback changes and what it leaves, then asks for confirmation. */
export function RollbackDialog({ slug, target, choice }: RollbackProps) {
  const project = useCall("projects.get", { params: { slug } });
  const active = project.data?.active_deployment;
  const compared = useCall(
    "deployments.compare",
    { params: { slug }, query: { from: active?.number ?? 0, to: target.number } },
    { enabled: active !== null && active !== undefined },
  );
  const since = target.activated_at ?? target.created_at;
  return (
    <ActionDialog
      row="deployments.rollback"
      title="Roll back"
      submit={`Roll back to #${target.number}`}
      input={() => ({ params: { slug }, body: { deployment: target.number } })}
    >
      {choice}
      <dl className="grid grid-cols-2 gap-4">
        <Fact label="From">
          {active === null || active === undefined ? "nothing" : `#${active.number}`}{" "}
          {active?.commit && <Mono>{shortCommit(active.commit)}</Mono>}
        </Fact>
        <Fact label="To">
          #{target.number} <Mono>{shortCommit(target.commit)}</Mono> · <Ago at={since} />
        </Fact>
        {active !== null && active !== undefined && (
          <Commits slug={slug} active={active.number} target={target.number} />
        )}
        <Fact label="Files">{active?.commit === target.commit ? "the same commit" : <Files of={compared.data} />}</Fact>
        <Fact label="Variables">
          <Variables of={compared.data} />
        </Fact>
        <Fact label="Domains">untouched</Fact>
        <Fact label="Database and storage">
          untouched;{" "}
          <Link className="underline" to="/projects/$slug/backups" params={{ slug }}>
            the data of before
          </Link>{" "}
          can be restored beside it
        </Fact>
      </dl>
      <p className="text-sm text-muted">
        It becomes a new deployment: started beside the present one, checked for health, then switched to. If it does
        not become healthy, nothing changes.
      </p>
    </ActionDialog>
  );
}

type Compared = Answer<"deployments.compare"> | undefined;

const mostNamed = 4;

/** Lists the commits that the rollback undoes or brings back. */
function Commits({
  slug,
  active,
  target,
}: {
  readonly slug: string;
  readonly active: number;
  readonly target: number;
}) {
  const deployments = useCall("deployments.list", { params: { slug } });
  const builds = useCall("builds.list", { params: { slug } });
  if (deployments.data === undefined || builds.data === undefined) return null;
  const { way, commits } = commitsBetween(deployments.data.deployments, builds.data.builds, { active, target });
  return (
    <Fact wide label={way === "undone" ? "Commits that are undone" : "Commits that come back"}>
      {commits.length === 0 && "none"}
      <ul>
        {commits.slice(0, mostNamed).map(({ commit, message }) => (
          <li key={commit} className="truncate">
            <Mono className="mr-2 text-muted">{shortCommit(commit)}</Mono>
            <Plain>{firstLine(message)}</Plain>
          </li>
        ))}
      </ul>
      {commits.length > mostNamed && `and ${commits.length - mostNamed} more`}
    </Fact>
  );
}

function Files({ of }: { readonly of: Compared }) {
  const files = of?.files ?? null;
  if (of === undefined || files === null) return "the image of that commit, without a build";
  const more = files.length > mostNamed ? `, and ${files.length - mostNamed} more` : "";
  return (
    <>
      {plural(files.length, "file")} differ{files.length === 1 ? "s" : ""}:{" "}
      <Mono className="wrap-anywhere">{files.slice(0, mostNamed).join(", ")}</Mono>
      {more}
    </>
  );
}

const kinds = [
  ["changed", "changed back"],
  ["added", "come back"],
  ["removed", "go"],
] as const;

function Variables({ of }: { readonly of: Compared }) {
  if (of === undefined) return "as they were then";
  const named = kinds.filter(([kind]) => of.variables[kind].length > 0);
  if (named.length === 0) return "the same";
  return named.map(([kind, words]) => (
    <span key={kind} className="block">
      <Mono className="wrap-anywhere">{of.variables[kind].join(", ")}</Mono> {words}
    </span>
  ));
}
