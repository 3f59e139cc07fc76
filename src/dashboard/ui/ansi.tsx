import type { ReactNode } from "react";
import { visible } from "../data/format.ts";

const colours: Readonly<Record<number, string>> = {
  30: "text-faint",
  31: "text-bad",
  32: "text-ok",
  33: "text-warn",
  34: "text-busy",
  35: "text-accent",
  36: "text-accent",
  90: "text-faint",
};

const sequence = /\u001b\[([0-9;:?]*)([A-Za-z])/g;

interface Style {
  readonly colour: string;
  readonly weight: string;
}

const plainStyle: Style = { colour: "", weight: "" };

/** Shows a log line with its ANSI colours mapped to the dashboard's, and marks `query`. Other control characters are made visible. */
export function Ansi({ text, query = "" }: { readonly text: string; readonly query?: string }): ReactNode {
  if (!text.includes("\u001b[")) return marked(visible(text), query);
  const parts: ReactNode[] = [];
  let style = plainStyle;
  let from = 0;
  const add = (end: number) => {
    if (end > from)
      parts.push(
        <span key={from} className={`${style.colour} ${style.weight}`}>
          {marked(visible(text.slice(from, end)), query)}
        </span>,
      );
  };
  for (const found of text.matchAll(sequence)) {
    add(found.index);
    from = found.index + found[0].length;
    if (found[2] === "m") style = styleAfter(style, found[1] ?? "");
  }
  add(text.length);
  return parts;
}

function styleAfter(before: Style, codes: string): Style {
  let style = before;
  for (const code of codes.split(";").map(Number)) {
    const colour = colours[code] ?? colours[code - 60];
    if (code === 0) style = plainStyle;
    else if (code === 1) style = { ...style, weight: "font-semibold" };
    else if (code === 2) style = { ...style, colour: "text-faint" };
    else if (code === 22) style = { ...style, weight: "" };
    else if (code === 39) style = { ...style, colour: "" };
    else if (colour !== undefined) style = { ...style, colour };
  }
  return style;
}

function marked(text: string, query: string): ReactNode {
  if (query === "") return text;
  const parts = text.split(new RegExp(`(${query.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")})`, "i"));
  return parts.map((part, index) => (index % 2 === 1 ? <mark key={index}>{part}</mark> : part));
}
