import { useState, type ComponentProps, type ReactNode } from "react";
import { Button } from "./button.tsx";

interface DialogButtonProps extends Omit<ComponentProps<typeof Button>, "onClick"> {
  readonly dialog: (close: () => void) => ReactNode;
}

/** A button that opens a dialog. Not for the rows of a table that is a list on phones: turning the phone would close the dialog. */
export function DialogButton({ dialog, ...button }: DialogButtonProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button {...button} onClick={() => setOpen(true)} />
      {isOpen && dialog(() => setOpen(false))}
    </>
  );
}
