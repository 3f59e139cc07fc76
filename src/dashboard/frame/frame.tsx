import { useIsFetching, useQueryClient } from "@tanstack/react-query";
import { Outlet, useNavigate, useParams, useRouterState } from "@tanstack/react-router";
import { Suspense, lazy, useEffect, useLayoutEffect, useState, useRef } from "react";
import { ConnectionError } from "../../contract/client.ts";
import { loadPart } from "../data/load-part.ts";
import type { Asked } from "./actions.ts";
import { onOpenPalette, type PaletteScope } from "./open-palette.ts";
import { projectTabs, sections } from "./places.ts";
import { Sidebar } from "./sidebar.tsx";
import { Menu } from "lucide-react";
import { Brand } from "../ui/brand.tsx";
import { Dialogs, useOpenDialog } from "../ui/dialogs.tsx";
import { IconButton } from "../ui/button.tsx";
import { PhoneProject } from "./phone-project.tsx";

/** Sidebar and page; on a phone the sidebar is a sheet. */
export function Frame() {
  useKeys();
  return (
    <Dialogs>
      <div className="flex min-h-dvh max-md:flex-col">
        <a
          href="#page"
          className="sr-only rounded-md bg-raised px-3 py-2 shadow-float focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50"
        >
          Skip to the page
        </a>
        <aside className="sticky top-0 h-dvh w-60 shrink-0 border-r border-line bg-panel max-md:hidden">
          <Sidebar />
        </aside>
        <PhoneBar />
        <Palette />
        <div className="flex min-w-0 flex-1 flex-col">
          <Connection />
          <main id="page" tabIndex={-1} className="flex min-h-0 min-w-0 flex-1 flex-col outline-none">
            <Outlet />
          </main>
        </div>
      </div>
    </Dialogs>
  );
}

const pairMs = 1000;

/** Handles keys outside of inputs and dialogs: `g` and a letter opens a page, `/` focuses the page's search, `?` shows the keys. */
function useKeys(): void {
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

const preloadMs = 2000;

// Loaded after the first page, which need not wait for it, but before a user is likely to open it.
const loadPalette = () => import("./opened-palette.tsx");
const OpenedPalette = lazy(async () => ({ default: (await loadPart(loadPalette)).OpenedPalette }));
const ActionFor = lazy(async () => ({ default: (await loadPart(() => import("./action-for.tsx"))).ActionFor }));

const KeysDialog = lazy(async () => ({ default: (await loadPart(() => import("./keys-dialog.tsx"))).KeysDialog }));

/** Listens for Ctrl-K, which opens a search for projects, pages and actions, and for `?`, which shows the keys. */
function Palette() {
  const [open, setOpen] = useState<PaletteScope>();
  const openDialog = useOpenDialog();
  const navigate = useNavigate();
  useEffect(() => {
    const waiting = setTimeout(() => void loadPalette().catch(() => {}), preloadMs);
    return () => clearTimeout(waiting);
  }, []);
  // A layout effect runs before the page's first frame, so no key is lost.
  useLayoutEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen((before) => (before === undefined ? "all" : undefined));
    };
    const onKeys = () => openDialog(<KeysDialog />);
    addEventListener("keydown", onKey);
    const stopOpening = onOpenPalette(setOpen);
    addEventListener("berth-keys", onKeys);
    return () => {
      removeEventListener("berth-keys", onKeys);
      removeEventListener("keydown", onKey);
      stopOpening();
    };
  }, [openDialog]);
  const ask = (asked: Asked) =>
    openDialog(<ActionFor asked={asked} />, () => {
      if ("slug" in asked && asked.tab !== undefined)
        void navigate({ to: `/projects/$slug/${asked.tab}`, params: { slug: asked.slug } });
    });
  return (
    <Suspense>
      {open !== undefined && <OpenedPalette scope={open} onClose={() => setOpen(undefined)} onAsk={ask} />}
    </Suspense>
  );
}

const againMs = 3000;

const isLost = (error: Error | null) => error instanceof ConnectionError;

/** Shows a line while the platform does not respond. */
function Connection() {
  const queries = useQueryClient();
  const fetching = useIsFetching();
  const [lost, setLost] = useState(false);
  useEffect(() => {
    const seen = queries
      .getQueryCache()
      .getAll()
      .filter((query) => query.isActive());
    setLost(seen.some(({ state }) => isLost(state.error) || isLost(state.fetchFailureReason)));
  }, [fetching, queries]);
  useEffect(() => {
    if (!lost) return;
    const again = () => void queries.refetchQueries({ type: "active", predicate: ({ state }) => isLost(state.error) });
    const timer = setInterval(again, againMs);
    return () => clearInterval(timer);
  }, [lost, queries]);
  return (
    <div
      role="status"
      className={lost ? "border-b border-warn/40 bg-warn/10 px-4 py-1 text-center text-xs text-warn" : "sr-only"}
    >
      {lost && (
        <>
          The platform does not answer; what is shown may be old.
          <span className="max-sm:sr-only"> Trying again …</span>
        </>
      )}
    </div>
  );
}

/** A phone's only row above the page: the sidebar as a sheet, and the project with its pages as another. */
function PhoneBar() {
  const [open, setOpen] = useState(false);
  const sheet = useRef<HTMLDialogElement>(null);
  const path = useRouterState({ select: (state) => state.location.pathname });
  const { slug } = useParams({ strict: false });
  useEffect(() => setOpen(false), [path]);
  useEffect(() => {
    if (open) sheet.current?.showModal();
    else sheet.current?.close();
  }, [open]);
  return (
    <header className="sticky top-0 z-20 flex h-12 items-center gap-2 border-b border-line bg-panel px-2 md:hidden">
      <IconButton label="Open the navigation" onClick={() => setOpen(true)}>
        <Menu size={18} />
      </IconButton>
      {slug === undefined ? (
        <>
          <Brand size={20} />
          <span className="font-semibold">Berth</span>
        </>
      ) : (
        <PhoneProject key={slug} slug={slug} />
      )}
      <dialog
        ref={sheet}
        aria-label="Navigation"
        onClose={() => setOpen(false)}
        onClick={(event) => event.target === sheet.current && setOpen(false)}
        className="m-0 h-dvh max-h-dvh w-72 border-r border-line bg-panel p-0 shadow-float"
      >
        {open && <Sidebar />}
      </dialog>
    </header>
  );
}
