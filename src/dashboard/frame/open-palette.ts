/** What the palette finds. `actions` are those of the current project. */
export type PaletteScope = "all" | "projects" | "actions";

const eventName = "berth-palette";

export function openPalette(scope: PaletteScope): void {
  dispatchEvent(new CustomEvent(eventName, { detail: scope }));
}

/** Calls the listener when the palette is to open. Returns the function that ends this. */
export function onOpenPalette(listener: (scope: PaletteScope) => void): () => void {
  const onEvent = (event: Event) => listener((event as CustomEvent<PaletteScope>).detail);
  addEventListener(eventName, onEvent);
  return () => removeEventListener(eventName, onEvent);
}
