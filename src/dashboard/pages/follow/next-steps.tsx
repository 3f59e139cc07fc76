import type { Answer } from "../../../contract/client.ts";
import { Button, Command } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useDialog } from "../../ui/dialogs.tsx";

interface NextStepsProps {
  readonly made: Answer<"follow.set">;
  readonly onClose?: () => void;
}

/** Shows what to configure at the repository's host. No later response contains the secret. */
export function NextSteps({ made, onClose }: NextStepsProps) {
  const { close } = useDialog();
  return (
    <Dialog title="Let the repository's host know" onClose={onClose}>
      <div className="flex flex-col gap-5 text-sm">
        {made.public_key !== null && (
          <div className="flex flex-col gap-2">
            <p>
              <b className="font-medium">Deploy key.</b> Add it to the repository; reading is enough.
            </p>
            <Command>{made.public_key}</Command>
          </div>
        )}
        <div className="flex flex-col gap-2">
          <p>
            <b className="font-medium">Webhook.</b> For pushes, with the content type <code>application/json</code>.
            Without it, Berth checks the branch every few minutes.
          </p>
          <Command>{made.hook_url}</Command>
          {made.secret === null ? (
            <p className="text-muted">Its secret stays the one that was shown when following began.</p>
          ) : (
            <>
              <p>Its secret, which is shown this once:</p>
              <Command>{made.secret}</Command>
            </>
          )}
        </div>
        <div className="flex justify-end">
          <Button look="primary" onClick={onClose ?? close}>
            Done
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
