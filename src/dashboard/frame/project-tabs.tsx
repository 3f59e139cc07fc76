import { Link, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, type ReactNode, type RefObject } from "react";
import { placeIn } from "./place-in.ts";
import { projectGroups } from "./places.ts";

/** Shows the groups of a project's pages, and the pages of the present group. */
export function ProjectTabs({ slug }: { readonly slug: string }) {
  const path = useRouterState({ select: (state) => state.location.pathname });
  const { group, tab } = placeIn(path, slug);
  const pages = projectGroups.find(([name]) => name === group)?.[1] ?? [];
  return (
    <>
      <Strip label="Project" path={path}>
        {projectGroups.map(([name, [[to]]]) => (
          <Tab key={name} to={to} slug={slug} isChosen={name === group}>
            {name}
          </Tab>
        ))}
      </Strip>
      {pages.length > 1 && (
        <Strip label={group} path={path} isInner>
          {pages.map(([to, label]) => (
            <Tab key={to} to={to} slug={slug} isChosen={to === tab[0]} isInner>
              {label}
            </Tab>
          ))}
        </Strip>
      )}
    </>
  );
}

interface TabProps {
  readonly to: (typeof projectGroups)[number][1][number][0];
  readonly slug: string;
  readonly isChosen: boolean;
  readonly isInner?: boolean;
  readonly children: string;
}

function Tab({ to, slug, isChosen, isInner = false, children }: TabProps) {
  const look = isInner
    ? `my-1.5 h-7 rounded-md ${isChosen ? "bg-selected !text-text" : "hover:bg-hover"}`
    : `h-9 border-b-2 ${isChosen ? "border-accent !text-text" : "border-transparent"}`;
  return (
    <Link
      to={to}
      params={{ slug }}
      activeOptions={{ exact: to === "/projects/$slug" }}
      aria-current={isChosen ? "page" : undefined}
      className={`target inline-flex items-center px-2.5 text-sm whitespace-nowrap text-muted hover:text-text focus-visible:outline-offset-[-2px] ${look}`}
    >
      {children}
    </Link>
  );
}

interface StripProps {
  readonly label: string;
  readonly path: string;
  readonly isInner?: boolean;
  readonly children: ReactNode;
}

function Strip({ label, path, isInner = false, children }: StripProps) {
  const strip = useRef<HTMLElement>(null);
  useScrollFade(strip);
  // On a phone the tabs scroll: bring the current one into view.
  useEffect(() => {
    void strip.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [path]);
  return (
    <nav
      ref={strip}
      aria-label={label}
      className={`flex gap-0.5 fade-x overflow-x-auto [scrollbar-width:none] ${isInner ? "border-t border-line" : "-mx-2.5 -mb-px"}`}
    >
      {children}
    </nav>
  );
}

/** Marks at which ends a strip has more to scroll to; the utility `fade-x` fades those ends. */
function useScrollFade(ref: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const strip = ref.current;
    if (strip === null) return undefined;
    const mark = () => {
      const { scrollLeft, clientWidth, scrollWidth } = strip;
      strip.toggleAttribute("data-before", scrollLeft > 1);
      strip.toggleAttribute("data-after", scrollLeft + clientWidth < scrollWidth - 1);
    };
    strip.addEventListener("scroll", mark, { passive: true });
    const observer = new ResizeObserver(mark);
    observer.observe(strip);
    return () => {
      strip.removeEventListener("scroll", mark);
      observer.disconnect();
    };
  }, [ref]);
}
