import { Link } from "@tanstack/react-router";
import { ExternalLink } from "lucide-react";
import { useCall, type Project } from "../data/api.ts";
import { shortCommit, visible } from "../data/format.ts";
import { OutsideLink } from "../ui/outside-link.tsx";
import { Dot, Status, Ago, Mono, Plain } from "../ui/text.tsx";
import { seenIn, standOf } from "./stand.ts";

interface OfProject {
  readonly project: Project;
}

/** How a project is, what it serves, and the deployment that failed after that. */
export function ProjectStatus({ project }: OfProject) {
  const { data } = useCall("overview.get", {});
  const seen = seenIn(data, project.id);
  const last = seen?.active_deployment ?? seen?.last_deployment;
  return (
    <div
      role="status"
      className="flex min-h-5 min-w-0 flex-wrap items-center gap-x-3 text-sm md:flex-1 md:basis-40 md:flex-nowrap"
    >
      <ProjectHealth project={project} />
      {last !== null && last !== undefined && (
        <span className="max-w-full truncate text-muted" title={visible(last.message)}>
          #{last.number} · <Ago at={last.at} /> · <Mono>{`${last.branch}@${shortCommit(last.commit)}`}</Mono>{" "}
          <Plain>{last.message}</Plain>
        </span>
      )}
      {seen?.last_deployment?.status === "failed" && seen.active_deployment !== null && (
        <Link
          to="/projects/$slug"
          params={{ slug: project.slug }}
          className="inline-flex shrink-0 items-center gap-1.5 font-medium text-bad hover:underline"
        >
          <Dot tone="bad" />#{seen.last_deployment.number} failed
        </Link>
      )}
    </div>
  );
}

export function ProjectHealth({ project }: OfProject) {
  const { data } = useCall("overview.get", {});
  const seen = seenIn(data, project.id);
  if (project.state === "deleted") return <Status tone="off">Deleted</Status>;
  if (project.state !== "active" || seen === undefined) return null;
  const { tone, word } = standOf(seen);
  return <Status tone={tone}>{word}</Status>;
}

export function PreviewOf({
  preview: { of, branch, expires_at: ends },
}: {
  readonly preview: NonNullable<Project["preview"]>;
}) {
  return (
    <span className="text-sm text-muted">
      Preview of{" "}
      <Link to="/projects/$slug/previews" params={{ slug: of }} className="text-accent hover:underline">
        {of}
      </Link>
      , <Mono>{visible(branch)}</Mono>,{" "}
      {ends === null ? (
        "pinned"
      ) : (
        <>
          ends <Ago at={ends} />
        </>
      )}
    </span>
  );
}

/** The address of the application. */
export function ProjectLink({ project: { url } }: OfProject) {
  return (
    <OutsideLink
      url={url}
      className="target inline-flex min-w-0 items-center gap-1.5 text-sm text-muted hover:text-accent md:ml-auto"
    >
      <span className="truncate">
        <Mono>{url.replace(/^https?:\/\//, "")}</Mono>
      </span>
      <ExternalLink aria-hidden size={13} className="shrink-0" />
    </OutsideLink>
  );
}
