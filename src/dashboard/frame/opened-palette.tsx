import { Search } from "lucide-react";
import { useEffect, useId, useState, type KeyboardEvent } from "react";
import { useIsPhone } from "../data/use-is-phone.ts";
import { Dot } from "../ui/text.tsx";
import { useModal } from "../ui/use-modal.ts";
import type { Asked } from "./actions.ts";
import type { PaletteScope } from "./open-palette.ts";
import { usePaletteItems, type Item } from "./palette-items.ts";

interface OpenedProps {
  readonly scope: PaletteScope;
  readonly onClose: () => void;
  readonly onAsk: (asked: Asked) => void;
}

export function OpenedPalette({ scope, onClose, onAsk }: OpenedProps) {
  const ref = useModal();
  const isPhone = useIsPhone();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const items = usePaletteItems({ scope, text, onAsk });
  const name = names[scope];
  // The braces are needed: in newer browsers scrollIntoView returns a promise, which React would take for a clean-up function.
  useEffect(() => {
    void document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" });
  }, [at, id]);
  const choose = (item: Item | undefined) => {
    if (item === undefined || item.isOff === true) return;
    onClose();
    item.go();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setAt((at + step + items.length) % Math.max(1, items.length));
    else if (event.key === "Enter") choose(items[at]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={ref}
      aria-label={name}
      onClose={onClose}
      onClick={(event) => event.target === ref.current && onClose()}
      className="mx-auto mt-[12vh] w-[min(38rem,calc(100vw-2rem))] overflow-hidden rounded-lg border border-line bg-raised p-0 shadow-float"
    >
      <div className="flex items-center gap-2.5 border-b border-line px-4">
        <Search aria-hidden size={16} className="text-faint" />
        <input
          autoFocus
          role="combobox"
          aria-label={name}
          aria-expanded
          aria-controls={id}
          aria-activedescendant={items.length === 0 ? undefined : `${id}-${at}`}
          placeholder={placeholderOf(scope, isPhone)}
          className="h-12 w-full bg-transparent text-base outline-none placeholder:text-faint"
          value={text}
          onChange={(event) => (setText(event.target.value), setAt(0))}
          onKeyDown={onKeyDown}
        />
      </div>
      <ul id={id} role="listbox" aria-label="Found" className="max-h-[50vh] overflow-y-auto p-1.5">
        {items.map((item, index) => (
          <li
            key={`${item.label} ${item.hint}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            aria-disabled={item.isOff}
            onMouseMove={() => setAt(index)}
            onClick={() => choose(item)}
            className="target flex h-9 cursor-pointer items-center justify-between gap-4 rounded-md px-3 text-sm aria-disabled:cursor-not-allowed aria-disabled:text-muted aria-selected:bg-selected"
          >
            <span className="flex min-w-0 items-center gap-2.5">
              {item.tone !== undefined && <Dot tone={item.tone} />}
              {item.icon !== undefined && <item.icon aria-hidden size={15} className="shrink-0 text-faint" />}
              <span className="truncate font-medium">{item.label}</span>
            </span>
            <span className="max-w-[60%] shrink-0 truncate text-muted" title={item.hint}>
              {item.keys !== undefined && (
                <kbd className="mr-3 text-xs max-sm:hidden pointer-coarse:hidden">{item.keys}</kbd>
              )}
              {item.hint}
            </span>
          </li>
        ))}
        {items.length === 0 && (
          <li role="option" aria-selected="false" aria-disabled className="px-3 py-6 text-center text-sm text-muted">
            Nothing is called that.
          </li>
        )}
      </ul>
    </dialog>
  );
}

const names: Record<PaletteScope, string> = { all: "Go to", projects: "Switch project", actions: "Actions" };

function placeholderOf(scope: PaletteScope, isPhone: boolean): string {
  if (scope === "projects") return "Find a project";
  if (scope === "actions") return "Find an action";
  return isPhone ? "Find a page or an action" : "Go to a page, or do something: deploy, roll back, new token …";
}
