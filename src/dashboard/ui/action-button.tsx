import type { ComponentProps } from "react";
import type { Answer, CallInput } from "../../contract/client.ts";
import type { RouteName } from "../../contract/routes.ts";
import { useAction } from "../data/api.ts";
import { useOneCall } from "../data/use-one-call.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { useOpenDialog } from "./dialogs.tsx";
import { Problem } from "./page.tsx";

/** A change without a form: a page has a button for it, the palette a dialog with its text. */
export interface PlainAction<N extends RouteName> {
  readonly row: N;
  readonly label: string;
  readonly input: CallInput<N>;
  /** What happens, if the label does not say it. */
  readonly text?: string;
}

interface ActionButtonProps<N extends RouteName>
  extends PlainAction<N>, Omit<ComponentProps<typeof Button>, "row" | "busy" | "onClick"> {
  readonly onDone?: (answer: Answer<N>) => void;
}

/** A button that makes its change at once. A dialog shows why the change was refused. */
export function ActionButton<N extends RouteName>({
  row,
  label,
  input,
  text,
  onDone,
  children = label,
  ...button
}: ActionButtonProps<N>) {
  const action = useAction(row);
  const { isBusy, run } = useOneCall();
  const openDialog = useOpenDialog();
  const refuse = (error: Error) =>
    openDialog(
      <Dialog title={label}>
        <Problem error={error} />
      </Dialog>,
    );
  return (
    <Button
      title={text}
      {...button}
      row={row}
      busy={isBusy}
      onClick={() => void run(() => action.mutateAsync(input).then(onDone, refuse))}
    >
      {children}
    </Button>
  );
}
