import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { sections } from "./places.ts";

const pairMs = 1000;

/** `g` and a letter goes to a page, `/` to the page's search. Not while something is typed. */
export function useKeys(): void {
  const navigate = useNavigate();
  useEffect(() => {
    let goneAtMs = 0;
    const onKey = (event: KeyboardEvent) => {
      const { target, key } = event;
      const isTyping = target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null)
        return;
      const section = performance.now() - goneAtMs < pairMs ? sections.find((each) => each.key === key) : undefined;
      const search = key === "/" ? document.querySelector<HTMLElement>("[data-search]") : null;
      if (key === "g") goneAtMs = performance.now();
      if (section === undefined && search === null) return;
      event.preventDefault();
      goneAtMs = 0;
      search?.focus();
      if (section !== undefined) void navigate({ to: section.to });
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [navigate]);
}
