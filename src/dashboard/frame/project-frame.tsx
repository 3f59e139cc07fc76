import { Link, Outlet } from "@tanstack/react-router";
import { ChevronsUpDown, Ellipsis, ExternalLink } from "lucide-react";
import { ApiError } from "../../contract/client.ts";
import { useCall } from "../data/api.ts";
import { shortCommit, visible } from "../data/format.ts";
import { useProject, useSlug, type Project } from "../data/project.ts";
import { IconButton } from "../ui/button.tsx";
import { Dot, Status } from "../ui/status.tsx";
import { Ago, Mono, Plain } from "../ui/text.tsx";
import { PageView } from "../ui/view.tsx";
import { NotFound } from "./not-found.tsx";
import { openPalette } from "./open-palette.ts";
import { ProjectTabs } from "./project-tabs.tsx";
import { seenIn, standOf } from "./stand.ts";

/** Shows a project's header and tabs above each of its pages. */
export function ProjectFrame() {
  const project = useProject();
  // The header says how the project stands, which would move the page if it came later.
  const { isPending } = useCall("overview.get", {});
  const slug = useSlug();
  if (project.error instanceof ApiError && project.error.status === 404)
    return <NotFound>This organization has no project {slug}.</NotFound>;
  return (
    <PageView title={slug} of={isPending ? { ...project, data: undefined } : project}>
      {(data) => (
        <>
          <Header project={data} />
          <Outlet />
        </>
      )}
    </PageView>
  );
}

function Header({ project }: { readonly project: Project }) {
  const { slug } = project;
  return (
    <div className="sticky top-0 z-10 bg-bg px-4 max-md:top-12 sm:px-8">
      <div className="border-b border-line">
        <div className="flex min-h-12 flex-wrap items-center gap-x-4 gap-y-1 pt-2">
          <span className="flex min-w-0 items-center gap-0.5">
            <Link to="/projects/$slug" params={{ slug }} className="truncate text-lg font-semibold hover:text-accent">
              {slug}
            </Link>
            <IconButton label="Switch project" className="-my-1" onClick={() => openPalette("projects")}>
              <ChevronsUpDown size={15} />
            </IconButton>
            <IconButton label="Actions" className="-my-1" onClick={() => openPalette("actions")}>
              <Ellipsis size={15} />
            </IconButton>
          </span>
          <ProjectStatus project={project} />
          {project.preview !== null && <PreviewOf preview={project.preview} />}
          <a
            href={project.url}
            target="_blank"
            rel="noreferrer"
            className="target ml-auto inline-flex items-center justify-end gap-1.5 text-sm text-muted hover:text-accent max-sm:-my-1 max-sm:min-w-11"
          >
            {/* A phone has no room for it beside the name. */}
            <Mono className="max-sm:sr-only">{project.url.replace(/^https?:\/\//, "")}</Mono>
            <ExternalLink aria-hidden size={13} />
          </a>
        </div>
        <ProjectTabs slug={slug} />
      </div>
    </div>
  );
}

function PreviewOf({
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

function ProjectStatus({ project }: { readonly project: Project }) {
  const { data } = useCall("overview.get", {});
  const seen = seenIn(data, project.id);
  const stand = seen === undefined ? undefined : standOf(seen);
  const last = seen?.active_deployment ?? seen?.last_deployment;
  return (
    <div role="status" className="flex min-h-5 items-center gap-3 text-sm">
      {project.state === "deleted" && <Status tone="off">Deleted</Status>}
      {project.state === "active" && stand !== undefined && <Status tone={stand.tone}>{stand.word}</Status>}
      {last !== null && last !== undefined && (
        <span className="max-w-[26rem] truncate text-muted max-sm:hidden" title={visible(last.message)}>
          #{last.number} · <Ago at={last.at} /> · <Mono>{`${last.branch}@${shortCommit(last.commit)}`}</Mono>{" "}
          <Plain>{last.message}</Plain>
        </span>
      )}
      {seen?.last_deployment?.status === "failed" && seen.active_deployment !== null && (
        <Link
          to="/projects/$slug"
          params={{ slug: project.slug }}
          className="inline-flex items-center gap-1.5 font-medium text-bad hover:underline"
        >
          <Dot tone="bad" />#{seen.last_deployment.number} failed
        </Link>
      )}
    </div>
  );
}
