import { lazy, Suspense, useEffect, useLayoutEffect, useState } from "react";
import { loadPart } from "../data/load-part.ts";
import type { Asked } from "./actions.ts";

const preloadMs = 2000;

// Loaded after the first page, which need not wait for it, but before a user is likely to open it.
const openPalette = () => import("./opened-palette.tsx");
const OpenedPalette = lazy(async () => ({ default: (await loadPart(openPalette)).OpenedPalette }));
const ActionFor = lazy(async () => ({ default: (await loadPart(() => import("./action-for.tsx"))).ActionFor }));

const KeysDialog = lazy(async () => ({ default: (await loadPart(() => import("./keys-dialog.tsx"))).KeysDialog }));

/** Listens for Ctrl-K, which opens a search for projects, pages and actions, and for `?`, which shows the keys. */
export function Palette() {
  const [open, setOpen] = useState(false);
  const [asked, setAsked] = useState<Asked>();
  const [showsKeys, setShowsKeys] = useState(false);
  useEffect(() => {
    const waiting = setTimeout(() => void openPalette().catch(() => {}), preloadMs);
    return () => clearTimeout(waiting);
  }, []);
  // A layout effect runs before the page's first frame, so no key is lost.
  useLayoutEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen((before) => !before);
    };
    const onAsk = () => setOpen(true);
    const onKeys = () => setShowsKeys(true);
    addEventListener("keydown", onKey);
    addEventListener("berth-palette", onAsk);
    addEventListener("berth-keys", onKeys);
    return () => {
      removeEventListener("berth-keys", onKeys);
      removeEventListener("keydown", onKey);
      removeEventListener("berth-palette", onAsk);
    };
  }, []);
  return (
    <Suspense>
      {open && <OpenedPalette onClose={() => setOpen(false)} onAsk={setAsked} />}
      {asked !== undefined && <ActionFor asked={asked} onClose={() => setAsked(undefined)} />}
      {showsKeys && <KeysDialog onClose={() => setShowsKeys(false)} />}
    </Suspense>
  );
}
