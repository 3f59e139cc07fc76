import { useState, type ComponentType, type ReactNode } from "react";
import { Dialog } from "../ui/dialog.tsx";
import { SelectField } from "../ui/field.tsx";
import type { OfProject } from "./actions.ts";

interface Choosing<T> {
  readonly label: string;
  /** Returns a project's things; undefined until they are loaded. */
  readonly useAll: (slug: string) => readonly T[] | undefined;
  readonly nameOf: (thing: T) => string;
  /** Returns what the list shows of one, if that is more than its name. */
  readonly wordsOf?: (thing: T) => string;
  /** What is said if there is none. */
  readonly none: string;
  /** Returns the page's dialog for one of them, with this field in it. */
  readonly dialog: (slug: string, thing: T, choice: ReactNode) => ReactNode;
}

/** Creates a dialog for one of a project's things, which is chosen in it. The first one is preselected. */
export function choosing<T>({
  label,
  useAll,
  nameOf,
  wordsOf = nameOf,
  none,
  dialog,
}: Choosing<T>): ComponentType<OfProject> {
  return function ChoosingDialog({ slug }) {
    const all = useAll(slug);
    const [name, setName] = useState<string>();
    if (all === undefined) return null;
    const chosen = all.find((each) => nameOf(each) === name) ?? all[0];
    if (chosen === undefined)
      return (
        <Dialog title={label}>
          <p className="text-sm text-muted">{none}</p>
        </Dialog>
      );
    return dialog(
      slug,
      chosen,
      <SelectField
        name="chosen"
        label={label}
        value={nameOf(chosen)}
        onChange={(event) => setName(event.target.value)}
        options={all.map((each) => [nameOf(each), wordsOf(each)])}
      />,
    );
  };
}
