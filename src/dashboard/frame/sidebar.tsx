import { Link, useRouterState } from "@tanstack/react-router";
import { BookOpen, LogOut, Monitor, Moon, Search, Sun } from "lucide-react";
import { Fragment, useEffect, useRef, useState } from "react";
import type { Answer } from "../../contract/client.ts";
import { useCall, useMe } from "../data/api.ts";
import { compareNames } from "../data/format.ts";
import { signOut } from "../data/session.ts";
import { readTheme, setTheme, type Theme } from "../data/theme.ts";
import { Brand } from "../ui/brand.tsx";
import { IconButton } from "../ui/button.tsx";
import { OutsideLink } from "../ui/outside-link.tsx";
import { Dot, Plain } from "../ui/text.tsx";
import { docsAbout } from "./docs-about.ts";
import { openPalette } from "./open-palette.ts";
import { sections } from "./places.ts";
import { standOf, type OverviewProject } from "./stand.ts";

const mostProjects = 30;
// The stream of changes does not report alerts, but the overview counts them for the operator.
const alertsMs = 30_000;

export function Sidebar() {
  const me = useMe();
  const { data, error } = useCall("overview.get", {}, { pollMs: () => me.platform_admin && alertsMs });
  const projects = (data?.projects.filter((project) => project.state === "active") ?? []).toSorted((a, b) =>
    compareNames(a.slug, b.slug),
  );
  const nav = useRef<HTMLElement>(null);
  const path = useRouterState({ select: (state) => state.location.pathname });
  const isLoaded = data !== undefined;
  // With many projects the list scrolls: bring the current page's line into view.
  useEffect(() => {
    void nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [path, isLoaded]);
  const shown = sections.filter((section) => section.operator !== true);
  return (
    <div className="flex h-full flex-col">
      <div className="flex items-center gap-2.5 px-4 pt-4 pb-3">
        <Brand />
        <div className="min-w-0 flex-1 leading-4">
          <p className="font-semibold">Berth</p>
          <p className="truncate text-xs text-faint">
            <Plain>{me.organization.name}</Plain>
          </p>
        </div>
      </div>
      <button
        type="button"
        onClick={() => openPalette("all")}
        className="mx-3 mb-3 flex h-8 items-center gap-2 rounded-md border border-line bg-bg px-2.5 text-sm text-faint hover:border-strong max-md:h-11"
      >
        <Search aria-hidden size={14} />
        <span className="flex-1 text-left">Go to …</span>
        <kbd className="text-xs max-sm:hidden pointer-coarse:hidden">Ctrl K</kbd>
      </button>
      <nav
        ref={nav}
        aria-label="Main"
        // Hidden until the projects are loaded: they are in its middle and would push down the entries below.
        className={`flex min-h-0 flex-1 flex-col gap-px scroll-py-3 overflow-y-auto px-2 pb-3 ${!isLoaded && error === null ? "invisible" : ""}`}
      >
        {shown.slice(0, 1).map((section) => (
          <Item key={section.to} section={section} />
        ))}
        <Projects projects={projects} previews={data?.previews ?? []} />
        {shown.slice(1).map((section) => (
          <Item
            key={section.to}
            section={section}
            count={section.to === "/approvals" ? (data?.totals.approvals_pending ?? 0) : 0}
          />
        ))}
        {me.platform_admin && (
          <>
            <h2 className={group}>Operator</h2>
            {sections
              .filter((section) => section.operator === true)
              .map((section) => (
                <Item
                  key={section.to}
                  section={section}
                  count={section.to === "/operator/status" ? (data?.totals.alerts ?? 0) : 0}
                />
              ))}
          </>
        )}
      </nav>
      <div className="flex flex-col border-y border-line">
        <How />
      </div>
      <footer className="flex items-center gap-1 py-2 pr-2 pl-4">
        <Link to="/account" className="min-w-0 flex-1 rounded-sm leading-4 hover:text-accent">
          <p className="truncate text-sm">
            <Plain>{me.token.name}</Plain>
          </p>
          <p className="text-xs text-faint">{me.platform_admin ? "operator" : me.role}</p>
        </Link>
        <ThemeButton />
        <IconButton label="Sign out" onClick={() => void signOut()}>
          <LogOut size={15} />
        </IconButton>
      </footer>
    </div>
  );
}

/** Opens the docs about the page that is shown. */
function How() {
  const route = useRouterState({ select: ({ matches }) => matches.at(-1)?.fullPath ?? "/" });
  return (
    <OutsideLink url={docsAbout(route)} className={`${item} mx-2 my-1`}>
      <BookOpen aria-hidden size={15} />
      <span className="flex-1">How this page works</span>
    </OutsideLink>
  );
}

const group = "px-2.5 pt-4 pb-1 text-xs font-medium text-faint";
const item =
  "flex h-8 shrink-0 items-center gap-2.5 rounded-md px-2.5 text-sm text-muted transition-colors hover:bg-hover hover:text-text max-md:h-11";
const chosen = "bg-selected !text-text font-medium";

interface Listed {
  readonly projects: readonly OverviewProject[];
  readonly previews: Answer<"overview.get">["previews"];
}

function Projects({ projects, previews }: Listed) {
  if (projects.length === 0) return null;
  return (
    <>
      <h2 className={group}>Projects</h2>
      {projects.slice(0, mostProjects).map((project) => (
        <Fragment key={project.id}>
          <ProjectItem project={project} />
          {previews
            .filter(({ preview_of: of }) => of === project.slug)
            .map((preview) => (
              <ProjectItem key={preview.id} project={preview} isInner />
            ))}
        </Fragment>
      ))}
      {projects.length > mostProjects && (
        <Link to="/" className={`${item} text-faint`}>
          {projects.length - mostProjects} more
        </Link>
      )}
      <h2 className={group}>Organization</h2>
    </>
  );
}

function ProjectItem({ project, isInner = false }: { readonly project: OverviewProject; readonly isInner?: boolean }) {
  return (
    <Link
      to="/projects/$slug"
      params={{ slug: project.slug }}
      className={`${item} ${isInner ? "pl-7" : ""}`}
      activeProps={{ className: chosen }}
    >
      <span className="flex w-[15px] shrink-0 justify-center">
        <Dot tone={standOf(project).tone} />
      </span>
      <span className="truncate">{project.slug}</span>
      <span className="sr-only">{standOf(project).word}</span>
    </Link>
  );
}

function Item({
  section: { to, label, icon: Icon },
  count = 0,
}: {
  readonly section: (typeof sections)[number];
  readonly count?: number;
}) {
  return (
    <Link
      to={to}
      activeOptions={{ exact: to === "/" || to === "/operator" }}
      className={item}
      activeProps={{ className: chosen }}
    >
      <Icon aria-hidden size={15} />
      <span className="flex-1">{label}</span>
      {count > 0 && <span className="rounded-sm bg-warn/15 px-1.5 text-xs font-medium text-warn">{count}</span>}
    </Link>
  );
}

const next: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const icons = { system: Monitor, light: Sun, dark: Moon };

/** Cycles through the themes: system, light, dark. */
function ThemeButton() {
  const [theme, choose] = useState(readTheme);
  const Icon = icons[theme];
  const change = () => {
    setTheme(next[theme]);
    choose(next[theme]);
  };
  return (
    <IconButton label={`Theme: ${theme}`} onClick={change}>
      <Icon size={15} />
    </IconButton>
  );
}
