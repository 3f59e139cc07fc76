import { stripVTControlCharacters } from "node:util";

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
