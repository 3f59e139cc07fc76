import { useEffect, useRef, type RefObject } from "react";

/** Keeps a dialog modal while it is in the page, then returns the focus to where it was. */
export function useModal(onOpen?: (dialog: HTMLDialogElement) => void): RefObject<HTMLDialogElement | null> {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    const { documentElement: root } = document;
    const dialog = ref.current;
    dialog?.showModal();
    if (dialog !== null) onOpen?.(dialog);
    // The style sheet colours the scroll bar's gutter by this attribute. A :has() selector would be matched again for every row of a log
    // that comes into view.
    root.dataset["modal"] = "";
    return () => {
      if (document.querySelector("dialog[open]") === null) delete root.dataset["modal"];
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return ref;
}
