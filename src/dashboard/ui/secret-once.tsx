import { Button } from "./button.tsx";
import { Command } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";

interface SecretOnceProps {
  readonly title: string;
  /** Null if a repeated request returned the answer without its secret. */
  readonly text: string | null;
  readonly onClose: () => void;
}

/** Shows a secret, this one time. */
export function SecretOnce({ title, text, onClose }: SecretOnceProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="flex flex-col gap-4">
        <p className="text-sm text-muted">Copy it now: it is stored nowhere and never shown again.</p>
        <Command>{text ?? ""}</Command>
        <div className="flex justify-end">
          <Button look="primary" onClick={onClose}>
            I have it
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
