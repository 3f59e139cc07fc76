import type { KeyboardEvent } from "react";

const steps: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};
const controls = "a[href], button, select, input";
// These use the arrows themselves.
const keepsArrows = "select, input, textarea";

/** Moves the focus with the arrow keys: up and down in a column of a table or between the items of a list, left and right in a row. */
export function moveInRows(event: KeyboardEvent<HTMLElement>): void {
  const step = steps[event.key];
  const from = event.target;
  if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!(from instanceof HTMLElement) || from.matches(keepsArrows)) return;
  const row = from.closest("tr, li");
  const rows = [...event.currentTarget.querySelectorAll("tr, li")];
  if (row === null || !rows.includes(row)) return;
  event.preventDefault();
  const target = step[1] === 0 ? besideIn(row, from, step[0]) : inNextRow(rows, from, step[1]);
  target?.focus();
  target?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function controlsIn(element: Element): HTMLElement[] {
  return [...element.querySelectorAll<HTMLElement>(controls)].filter((control) => control.checkVisibility());
}

function besideIn(row: Element, from: HTMLElement, by: number): HTMLElement | undefined {
  const all = controlsIn(row);
  return all[all.indexOf(from) + by];
}

/** Returns the control in the same place of the next row that has one, or else that row's first one. */
function inNextRow(rows: readonly Element[], from: HTMLElement, by: number): HTMLElement | undefined {
  const column = from.closest<HTMLTableCellElement>("td, th");
  const place = column === null ? -1 : controlsIn(column).indexOf(from);
  const start = rows.findIndex((row) => row.contains(from));
  for (let at = start + by; rows[at] !== undefined; at += by) {
    const next = rows[at] as Element;
    const cell = column === null ? undefined : next.children[column.cellIndex];
    const found = (cell && controlsIn(cell)[place]) ?? controlsIn(next)[0];
    if (found !== undefined) return found;
  }
  return undefined;
}
