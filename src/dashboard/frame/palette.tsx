import { useNavigate } from "@tanstack/react-router";
import { Search } from "lucide-react";
import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";
import { useCall } from "../data/api.ts";
import { useMe } from "../data/me.ts";
import { setTheme } from "../data/theme.ts";
import { matchRank, projectTabs, sections } from "./places.ts";

interface Item {
  readonly label: string;
  readonly hint: string;
  readonly go: () => void;
}

/** Ctrl-K: projects, pages and actions, found by a few letters. */
export function Palette() {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen((before) => !before);
    };
    const onAsk = () => setOpen(true);
    addEventListener("keydown", onKey);
    addEventListener("berth-palette", onAsk);
    return () => {
      removeEventListener("keydown", onKey);
      removeEventListener("berth-palette", onAsk);
    };
  }, []);
  return open ? <Opened onClose={() => setOpen(false)} /> : null;
}

const mostShown = 50;

function Opened({ onClose }: { readonly onClose: () => void }) {
  const ref = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const items = useItems()
    .map((item) => ({ ...item, rank: matchRank(`${item.label} ${item.hint}`, text) }))
    .filter(({ rank }) => rank > 0)
    .toSorted((a, b) => b.rank - a.rank)
    .slice(0, mostShown);
  useEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    return () => (before instanceof HTMLElement ? before.focus() : undefined);
  }, []);
  // In braces: newer browsers answer with a promise, which is no clean-up.
  useEffect(() => {
    void document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" });
  }, [at, id]);
  const choose = (item: Item | undefined) => {
    if (item === undefined) return;
    onClose();
    item.go();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setAt((at + step + items.length) % Math.max(1, items.length));
    else if (event.key === "Enter") choose(items[at]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={ref}
      aria-label="Go to"
      onClose={onClose}
      onClick={(event) => event.target === ref.current && onClose()}
      className="mx-auto mt-[12vh] w-[min(38rem,calc(100vw-2rem))] overflow-hidden rounded-lg border border-line bg-raised p-0 shadow-float"
    >
      <div className="flex items-center gap-2.5 border-b border-line px-4">
        <Search aria-hidden size={16} className="text-faint" />
        <input
          autoFocus
          role="combobox"
          aria-label="Go to"
          aria-expanded
          aria-controls={id}
          aria-activedescendant={items.length === 0 ? undefined : `${id}-${at}`}
          placeholder="Go to a project, a page, an action …"
          className="h-12 w-full bg-transparent text-base outline-none placeholder:text-faint"
          value={text}
          onChange={(event) => (setText(event.target.value), setAt(0))}
          onKeyDown={onKeyDown}
        />
      </div>
      <ul id={id} role="listbox" aria-label="Found" className="max-h-[50vh] overflow-y-auto p-1.5">
        {items.map((item, index) => (
          <li
            key={`${item.label} ${item.hint}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            onMouseMove={() => setAt(index)}
            onClick={() => choose(item)}
            className="flex h-9 cursor-pointer items-center justify-between gap-4 rounded-md px-3 text-sm aria-selected:bg-selected"
          >
            <span className="truncate font-medium">{item.label}</span>
            <span className="truncate text-faint">{item.hint}</span>
          </li>
        ))}
        {items.length === 0 && (
          <li role="option" aria-selected="false" aria-disabled className="px-3 py-6 text-center text-sm text-muted">
            Nothing is called that.
          </li>
        )}
      </ul>
    </dialog>
  );
}

function useItems(): Item[] {
  const navigate = useNavigate();
  const me = useMe();
  const { data } = useCall("overview.get", {});
  const pages = sections.filter((section) => section.operator !== true || me.platform_admin);
  return [
    ...(data?.projects ?? []).map(({ slug }) => ({
      label: slug,
      hint: "Project",
      go: () => void navigate({ to: "/projects/$slug", params: { slug } }),
    })),
    ...pages.map(({ to, label }) => ({ label, hint: "Page", go: () => void navigate({ to }) })),
    ...(data?.projects ?? []).flatMap(({ slug }) =>
      projectTabs.slice(1).map(([to, label]) => ({
        label: `${slug}: ${label}`,
        hint: "Project page",
        go: () => void navigate({ to, params: { slug } }),
      })),
    ),
    ...(["light", "dark", "system"] as const).map((theme) => ({
      label: `Theme: ${theme}`,
      hint: "Action",
      go: () => setTheme(theme),
    })),
  ];
}
