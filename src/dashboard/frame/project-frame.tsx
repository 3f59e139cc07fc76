import { Link, Outlet } from "@tanstack/react-router";
import { ChevronsUpDown, Ellipsis } from "lucide-react";
import { ApiError } from "../../contract/client.ts";
import { useCall, useProject, useSlug, type Project } from "../data/api.ts";
import { IconButton } from "../ui/button.tsx";
import { PageView } from "../ui/page.tsx";
import { NotFound } from "./not-found.tsx";
import { openPalette } from "./open-palette.ts";
import { PreviewOf, ProjectLink, ProjectStatus } from "./project-status.tsx";
import { ProjectTabs } from "./project-tabs.tsx";

/** Shows a project's header and tabs above each of its pages; on a phone, `PhoneProject` has both. */
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
    <div className="sticky top-0 z-10 bg-bg px-8 max-md:hidden">
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
          <ProjectLink project={project} />
        </div>
        <ProjectTabs slug={slug} />
      </div>
    </div>
  );
}
