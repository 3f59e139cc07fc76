import { stripVTControlCharacters, styleText } from "node:util";

const marksOfDirection = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Removes what controls a terminal from an application's text: control sequences and characters, marks of direction. Colours may stay. */
export function terminalText(text: string, { colours }: { readonly colours: boolean }): string {
  const parts = colours ? text.split(/(\x1b\[[0-9;]*m)/) : [text];
  return parts.map((part, index) => (index % 2 === 1 ? part : withoutControls(part))).join("");
}

function withoutControls(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/[^\P{Cc}\n\t]/gu, "")
    .replaceAll(marksOfDirection, "");
}

/** Returns the first line of a text, safe to print: nothing in it can move the cursor or retitle a window, and long text ends in an ellipsis. */
export function oneLine(text: string, atMost = Infinity): string {
  const first = stripVTControlCharacters(text).split(/\r?\n/, 1)[0] ?? "";
  const letters = [
    ...first
      .replace(/\p{Cc}/gu, " ")
      .replaceAll(marksOfDirection, "")
      .trim(),
  ];
  return letters.length > atMost ? `${letters.slice(0, atMost - 1).join("")}…` : letters.join("");
}

/** Formats a time as `3 min ago` or `in 2 d`; "never" for null. */
export function relativeTime(timestamp: string | null, nowMs = Date.now()): string {
  if (timestamp === null) return "never";
  const seconds = Math.round((nowMs - Date.parse(timestamp)) / 1000);
  const distance = span(Math.abs(seconds));
  if (Math.abs(seconds) < 2) return "now";
  return seconds > 0 ? `${distance} ago` : `in ${distance}`;
}

/** Formats how long something took, or has taken so far. */
export function duration(from: string, to: string | null, nowMs = Date.now()): string {
  const endMs = to === null ? nowMs : Date.parse(to);
  return span(Math.max(0, Math.round((endMs - Date.parse(from)) / 1000)));
}

const units = [
  { name: "y", seconds: 31_536_000 },
  { name: "d", seconds: 86_400 },
  { name: "h", seconds: 3600 },
  { name: "min", seconds: 60 },
  { name: "s", seconds: 1 },
];

function span(seconds: number): string {
  const unit = units.find((candidate) => seconds >= candidate.seconds);
  return unit === undefined ? "0 s" : `${Math.floor(seconds / unit.seconds)} ${unit.name}`;
}

/** Formats rows under a head, in columns two spaces apart. `empty` is shown if there are no rows. */
export function table(
  paint: Paint,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  empty: string,
): string {
  if (rows.length === 0) return empty;
  return columns([head.map((word) => paint.dim(word)), ...rows]);
}

/** Formats names and values, one pair per line. */
export function facts(paint: Paint, pairs: readonly (readonly [string, string | null])[]): string {
  return columns(
    pairs.filter(([, value]) => value !== null).map(([name, value]) => [paint.dim(name), value as string]),
  );
}

/** Aligns cells; colour codes do not count as width. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows)
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, width(cell));
  const line = (row: readonly string[]) =>
    row.map((cell, index) => cell + " ".repeat((widths[index] as number) - width(cell))).join("  ");
  return rows.map((row) => line(row).trimEnd()).join("\n");
}

function width(text: string): number {
  return [...stripVTControlCharacters(text)].length;
}

/** Colours text, or returns it unchanged if colours are off. */
export type Paint = Readonly<Record<Ink, (text: string) => string>>;

const inks = ["bold", "dim", "red", "green", "yellow", "cyan"] as const;
type Ink = (typeof inks)[number];

export function createPaint(coloured: boolean): Paint {
  const brush = (ink: Ink) => (text: string) => (coloured ? styleText(ink, text, { validateStream: false }) : text);
  return Object.fromEntries(inks.map((ink) => [ink, brush(ink)])) as Paint;
}

const statuses: Readonly<Partial<Record<Ink, string>>> = {
  green: "active succeeded ready completed verified ok approved healthy live",
  red: "failed critical fail deleted timeout missed mismatch denied suspended crashing down",
  yellow:
    "warning warn unknown queued running pending starting provisioning issuing deploying maintenance degraded building removing",
};
const inkOfStatus = new Map(
  Object.entries(statuses).flatMap(([ink, words]) => words.split(" ").map((word) => [word, ink as Ink])),
);

/** Colours a status by how good it is; statuses of finished things are dim. */
export function paintStatus(paint: Paint, status: string): string {
  return paint[inkOfStatus.get(status) ?? "dim"](status);
}
