import { lazy, Suspense, useEffect, useLayoutEffect, useState } from "react";
import { loadPart } from "../data/load-part.ts";
import type { Asked } from "./actions.ts";
import { onOpenPalette, type PaletteScope } from "./open-palette.ts";

const preloadMs = 2000;

// Loaded after the first page, which need not wait for it, but before a user is likely to open it.
const loadPalette = () => import("./opened-palette.tsx");
const OpenedPalette = lazy(async () => ({ default: (await loadPart(loadPalette)).OpenedPalette }));
const ActionFor = lazy(async () => ({ default: (await loadPart(() => import("./action-for.tsx"))).ActionFor }));

const KeysDialog = lazy(async () => ({ default: (await loadPart(() => import("./keys-dialog.tsx"))).KeysDialog }));

/** Listens for Ctrl-K, which opens a search for projects, pages and actions, and for `?`, which shows the keys. */
export function Palette() {
  const [open, setOpen] = useState<PaletteScope>();
  const [asked, setAsked] = useState<Asked>();
  const [showsKeys, setShowsKeys] = useState(false);
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
    const onKeys = () => setShowsKeys(true);
    addEventListener("keydown", onKey);
    const stopOpening = onOpenPalette(setOpen);
    addEventListener("berth-keys", onKeys);
    return () => {
      removeEventListener("berth-keys", onKeys);
      removeEventListener("keydown", onKey);
      stopOpening();
    };
  }, []);
  return (
    <Suspense>
      {open !== undefined && <OpenedPalette scope={open} onClose={() => setOpen(undefined)} onAsk={setAsked} />}
      {asked !== undefined && <ActionFor asked={asked} onClose={() => setAsked(undefined)} />}
      {showsKeys && <KeysDialog onClose={() => setShowsKeys(false)} />}
    </Suspense>
  );
}
