import { useNavigate, useParams } from "@tanstack/react-router";
import { useLayoutEffect } from "react";
import { projectTabs, sections } from "./places.ts";

const pairMs = 1000;

/** Handles keys outside of inputs and dialogs: `g` and a letter opens a page, `/` focuses the page's search, `?` shows the keys. */
export function useKeys(): void {
  const navigate = useNavigate();
  const { slug } = useParams({ strict: false });
  // A layout effect runs before the page's first frame, so no key is lost.
  useLayoutEffect(() => {
    let goneAtMs = -pairMs;
    const go = (key: string): boolean => {
      const section = sections.find((each) => each.key === key);
      const tab = slug === undefined ? undefined : projectTabs.find(([, , letter]) => letter === key);
      if (section !== undefined) void navigate({ to: section.to });
      else if (tab !== undefined && slug !== undefined) void navigate({ to: tab[0], params: { slug } });
      return section !== undefined || tab !== undefined;
    };
    const onKey = (event: KeyboardEvent) => {
      const { target, key } = event;
      const isTyping = target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null)
        return;
      const isSecond = performance.now() - goneAtMs < pairMs;
      goneAtMs = key === "g" && !isSecond ? performance.now() : -pairMs;
      const search = key === "/" ? document.querySelector<HTMLElement>("[data-search]") : null;
      if (isSecond ? !go(key) : search === null && key !== "?") return;
      event.preventDefault();
      search?.focus();
      if (key === "?") dispatchEvent(new Event("berth-keys"));
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [navigate, slug]);
}
