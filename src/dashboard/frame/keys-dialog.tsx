import type { ReactNode } from "react";
import { Dialog } from "../ui/dialog.tsx";
import { projectTabs, sections } from "./places.ts";

const everywhere = [
  ["Ctrl K", "Find a project, a page or an action"],
  ["/", "To the page's search"],
  ["?", "These keys"],
  ["Esc", "Close a dialog, and back to where the focus was"],
  ["← ↑ ↓ →", "From cell to cell in a table of rows; Enter opens one"],
  ["Ctrl Enter", "Run the SQL statement"],
] as const;

export function KeysDialog() {
  return (
    <Dialog title="Keys" shape="wide">
      {/* Focusable, so that the keyboard can scroll it. */}
      <div tabIndex={0} className="grid gap-x-10 gap-y-6 rounded-sm sm:grid-cols-3">
        <Keys title="Everywhere" keys={everywhere} />
        <Keys title="Go to a page" keys={sections.map(({ key, label }) => [`g ${key}`, label])} />
        <Keys title="In a project" keys={projectTabs.map(([, label, key]) => [`g ${key}`, label])} />
      </div>
    </Dialog>
  );
}

interface KeysProps {
  readonly title: string;
  readonly keys: readonly (readonly [keys: string, text: ReactNode])[];
}

function Keys({ title, keys }: KeysProps) {
  return (
    <section>
      <h3 className="mb-2 text-xs font-medium text-faint">{title}</h3>
      <dl className="flex flex-col gap-1.5 text-sm">
        {keys.map(([key, text]) => (
          <div key={key} className="flex items-baseline gap-3">
            <dt className="w-[5.25rem] shrink-0">
              <kbd className="rounded-sm border border-line bg-panel px-1.5 py-0.5 text-xs whitespace-nowrap">
                {key}
              </kbd>
            </dt>
            <dd className="min-w-0 text-muted">{text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
