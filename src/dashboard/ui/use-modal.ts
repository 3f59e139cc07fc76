import { useEffect, useRef, type RefObject } from "react";

/** A dialog that is modal as long as it is in the page; then the focus goes back to where it was. */
export function useModal(onOpen?: (dialog: HTMLDialogElement) => void): RefObject<HTMLDialogElement | null> {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    const { documentElement: root } = document;
    const dialog = ref.current;
    dialog?.showModal();
    if (dialog !== null) onOpen?.(dialog);
    // For the gutter of the scroll bar. A selector with :has() would be matched again with every row of a log that comes into sight.
    root.dataset["modal"] = "";
    return () => {
      if (document.querySelector("dialog[open]") === null) delete root.dataset["modal"];
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return ref;
}
