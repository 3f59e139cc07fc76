import { X } from "lucide-react";
import { useId, type ReactNode } from "react";
import { createPortal } from "react-dom";
import { visible } from "../data/format.ts";
import { IconButton } from "./button.tsx";
import { useDialog } from "./dialogs.tsx";
import { useModal } from "./use-modal.ts";

export interface DialogProps {
  readonly title: string;
  /** Called instead of closing it, by an owner that does so itself. */
  readonly onClose?: (() => void) | undefined;
  readonly children: ReactNode;
  /** A sheet is at the right edge and as high as the page; `bottom` is at the lower edge. */
  readonly shape?: keyof typeof shapes;
}

const shapes = {
  dialog: "m-auto w-[min(32rem,calc(100vw-2rem))] max-h-[calc(100dvh-4rem)] rounded-lg border",
  wide: "m-auto w-[min(52rem,calc(100vw-2rem))] max-h-[calc(100dvh-4rem)] rounded-lg border",
  sheet: "my-0 mr-0 ml-auto h-dvh max-h-dvh w-[min(30rem,100vw)] border-l",
  bottom: "mx-0 mt-auto mb-0 w-full max-w-full max-h-[calc(100dvh-3rem)] rounded-t-lg border-t",
};

/**
 * The browser's own dialog: it traps focus, closes on Escape, makes the page behind it inert and then returns the focus. It stands at the
 * end of the page, so that it does not look like the table in which the button that opens it is.
 */
export function Dialog({ title, onClose, children, shape = "dialog" }: DialogProps) {
  const opened = useDialog();
  const close = onClose ?? opened.close;
  const ref = useModal((dialog) => firstControl(dialog)?.focus());
  const id = useId();
  return createPortal(
    <dialog
      ref={ref}
      aria-labelledby={id}
      onClose={close}
      onClick={(event) => event.target === ref.current && close()}
      className={`${shapes[shape]} border-line bg-raised p-0 shadow-float`}
    >
      <div className="flex max-h-[inherit] flex-col">
        <header className="flex items-center justify-between gap-4 border-b border-line py-2.5 pr-2.5 pl-5">
          <h2 id={id} className="text-lg font-semibold">
            {visible(title)}
          </h2>
          <IconButton label="Close" onClick={close}>
            <X size={16} />
          </IconButton>
        </header>
        {/* The padding is the content's, so that a sticky footer reaches the edge of what scrolls. */}
        <div className="min-h-0 scroll-pb-20 overflow-y-auto">
          <div className="p-5">{children}</div>
        </div>
      </div>
    </dialog>,
    document.body,
  );
}

/** Returns what gets the focus first: the first field, or the submit button of a form without fields. The browser would choose the close button. */
function firstControl(dialog: HTMLElement): HTMLElement | null {
  const field = dialog.querySelector<HTMLElement>("form :is(input:not([type=checkbox]), textarea, select)");
  return field ?? dialog.querySelector<HTMLElement>("form [type=submit]");
}
