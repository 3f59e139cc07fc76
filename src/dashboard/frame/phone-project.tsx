import { Link, useRouterState } from "@tanstack/react-router";
import { ChevronDown, ChevronsUpDown, Ellipsis } from "lucide-react";
import { useEffect, useState } from "react";
import { useCall, type Project } from "../data/api.ts";
import { visible } from "../data/format.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { openPalette, type PaletteScope } from "./open-palette.ts";
import { placeIn } from "./place-in.ts";
import { projectGroups } from "./places.ts";
import { PreviewOf, ProjectHealth, ProjectLink, ProjectStatus } from "./project-status.tsx";

/** A project in a phone's row: its name, its health, and the group of pages, which opens all of them. */
export function PhoneProject({ slug }: { readonly slug: string }) {
  const { data: project } = useCall("projects.get", { params: { slug } });
  const path = useRouterState({ select: (state) => state.location.pathname });
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  return (
    <>
      <Link
        to="/projects/$slug"
        params={{ slug }}
        className="target inline-flex min-w-0 items-center font-semibold hover:text-accent"
      >
        <span className="truncate">{visible(slug)}</span>
      </Link>
      <div role="status" className="text-sm">
        {project !== undefined && <ProjectHealth project={project} />}
      </div>
      {project !== undefined && (
        <button
          type="button"
          aria-haspopup="dialog"
          className="target ml-auto inline-flex h-9 shrink-0 items-center gap-1 rounded-md pl-2.5 pr-1.5 text-sm font-medium hover:bg-hover"
          onClick={() => setOpen(true)}
        >
          <span className="sr-only">Pages of the project, now </span>
          {placeIn(path, slug).group}
          <ChevronDown aria-hidden size={16} className="text-muted" />
        </button>
      )}
      {isOpen && project !== undefined && <Pages project={project} path={path} onClose={() => setOpen(false)} />}
    </>
  );
}

interface PagesProps {
  readonly project: Project;
  readonly path: string;
  readonly onClose: () => void;
}

/** All pages of a project in their groups, at the end of the screen that a thumb reaches. */
function Pages({ project, path, onClose }: PagesProps) {
  const { slug } = project;
  const { tab } = placeIn(path, slug);
  const open = (scope: PaletteScope) => {
    onClose();
    openPalette(scope);
  };
  return (
    <Dialog title={slug} onClose={onClose} shape="bottom">
      <div className="flex flex-col gap-4">
        <div className="flex min-w-0 flex-col gap-1">
          <ProjectStatus project={project} />
          {project.preview !== null && <PreviewOf preview={project.preview} />}
          <ProjectLink project={project} />
        </div>
        <nav aria-label="Project" className="-mx-2.5 flex flex-col gap-2">
          {projectGroups.map(([name, pages]) => (
            <section key={name} aria-label={name}>
              {pages.length > 1 && <h3 className="px-2.5 pb-0.5 text-xs font-medium text-faint">{name}</h3>}
              <ul className="grid grid-cols-3 gap-x-1">
                {pages.map(([to, label]) => (
                  <li key={to}>
                    <Link
                      to={to}
                      params={{ slug }}
                      onClick={onClose}
                      aria-current={to === tab[0] ? "page" : undefined}
                      className={`flex h-11 items-center rounded-md px-2.5 text-sm ${to === tab[0] ? "bg-selected font-medium text-text" : "text-muted hover:bg-hover"}`}
                    >
                      {label}
                    </Link>
                  </li>
                ))}
              </ul>
            </section>
          ))}
        </nav>
        <div className="grid grid-cols-2 gap-2 border-t border-line pt-4">
          <Button icon={<Ellipsis size={15} />} onClick={() => open("actions")}>
            Actions
          </Button>
          <Button icon={<ChevronsUpDown size={15} />} onClick={() => open("projects")}>
            Switch project
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
