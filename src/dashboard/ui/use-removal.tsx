import { useState, type ReactNode } from "react";
import type { CallInput } from "../../contract/client.ts";
import type { RouteName } from "../../contract/routes.ts";
import { ConfirmAction } from "./action-dialog.tsx";
import { RemoveButton } from "./button.tsx";
import type { Column } from "./table.tsx";

interface Removal<N extends RouteName, T> {
  readonly row: N;
  readonly title: string;
  readonly verb?: string;
  readonly nameOf: (thing: T) => string;
  readonly input: (thing: T) => CallInput<N>;
  /** What happens, above the field for the name. */
  readonly warning: ReactNode;
}

/** How the things of a list are removed: the button of each, a column of these buttons, and the dialog that one opens. */
export function useRemoval<N extends RouteName, T>({ row, title, verb = "Remove", ...of }: Removal<N, T>) {
  const [chosen, setChosen] = useState<T>();
  const button = (thing: T) => (
    <RemoveButton row={row} label={`${verb} ${of.nameOf(thing)}`} onClick={() => setChosen(thing)} />
  );
  const column: Column<T> = { head: "", end: true, cell: button };
  const dialog = chosen !== undefined && (
    <ConfirmAction
      row={row}
      title={title}
      submit={verb}
      typed={of.nameOf(chosen)}
      input={of.input(chosen)}
      onClose={() => setChosen(undefined)}
    >
      {of.warning}
    </ConfirmAction>
  );
  return { button, column, dialog };
}
