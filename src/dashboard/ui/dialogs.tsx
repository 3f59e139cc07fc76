import { useRouterState } from "@tanstack/react-router";
import { createContext, Suspense, use, useCallback, useEffect, useState, type ReactNode } from "react";

/** Opens a dialog. `onDone` is called after its action has succeeded, once it is closed. */
type OpenDialog = (dialog: ReactNode, onDone?: () => void) => void;

interface Opened {
  readonly id: number;
  readonly close: () => void;
  /** Closes the dialog after its action has succeeded. */
  readonly finish: () => void;
}

const OpenContext = createContext<OpenDialog>(() => {});
const OpenedContext = createContext<Opened>({ id: 0, close: () => {}, finish: () => {} });

let count = 0;

/**
 * Shows the dialogs that pages and the palette open, the newest on top, until each closes or another page is shown. A dialog keeps what it was
 * opened with, and stays when the row of the button that opened it goes.
 */
export function Dialogs({ children }: { readonly children: ReactNode }) {
  const [shown, setShown] = useState<readonly { readonly of: Opened; readonly dialog: ReactNode }[]>([]);
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(() => setShown([]), [path]);
  const open = useCallback<OpenDialog>((dialog, onDone) => {
    const close = () => setShown((now) => now.filter((each) => each.of !== of));
    const of: Opened = { id: (count += 1), close, finish: () => (close(), onDone?.()) };
    setShown((now) => [...now, { of, dialog }]);
  }, []);
  return (
    <OpenContext value={open}>
      {children}
      {shown.map(({ of, dialog }) => (
        <OpenedContext key={of.id} value={of}>
          <Suspense>{dialog}</Suspense>
        </OpenedContext>
      ))}
    </OpenContext>
  );
}

export function useOpenDialog(): OpenDialog {
  return use(OpenContext);
}

/** Returns how the dialog around it is closed. */
export function useDialog(): Opened {
  return use(OpenedContext);
}
