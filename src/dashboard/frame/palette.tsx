import { lazy, Suspense, useEffect, useState } from "react";
import type { Asked } from "./actions.ts";

const preloadMs = 2000;

// Not with the first page, which would wait for it, but before a user is likely to open it.
const openPalette = () => import("./opened-palette.tsx");
const OpenedPalette = lazy(() => openPalette().then((loaded) => ({ default: loaded.OpenedPalette }), loadAgain));
const ActionFor = lazy(() => import("./action-for.tsx").then((loaded) => ({ default: loaded.ActionFor }), loadAgain));

/** Another version of the platform is there by now. */
function loadAgain(): Promise<never> {
  location.reload();
  return new Promise(() => {});
}

/** Ctrl-K: projects, pages and actions, found by a few letters. */
export function Palette() {
  const [open, setOpen] = useState(false);
  const [asked, setAsked] = useState<Asked>();
  useEffect(() => {
    const waiting = setTimeout(() => void openPalette().catch(() => {}), preloadMs);
    return () => clearTimeout(waiting);
  }, []);
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
  return (
    <Suspense>
      {open && <OpenedPalette onClose={() => setOpen(false)} onAsk={setAsked} />}
      {asked !== undefined && <ActionFor asked={asked} onClose={() => setAsked(undefined)} />}
    </Suspense>
  );
}
