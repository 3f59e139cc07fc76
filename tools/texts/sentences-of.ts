import { parseSync, Visitor } from "oxc-parser";

export interface Sentence {
  readonly line: number;
  readonly text: string;
}

/** A sentence begins with a capital letter or an inserted value, and has two adjacent words; no identifier, path, pattern or SQL does. */
const sentence = /^(?:[A-Z]|\$\{)/;
const words = /[A-Za-z]{2,}[,;:]? [A-Za-z]{2,}/;

/** Returns the sentences among a file's string literals and templates; inserted values are shown as their code. */
export function sentencesOf(file: string, source: string): readonly Sentence[] {
  const found: Sentence[] = [];
  const add = (start: number, text: string, literal = text) => {
    const trimmed = text.trim().replaceAll(/\s*\n\s*/g, " ⏎ ");
    if (!sentence.test(trimmed) || !words.test(literal)) return;
    found.push({ line: source.slice(0, start).split("\n").length, text: trimmed });
  };
  const visitor = new Visitor({
    Literal: ({ start, value }) => {
      if (typeof value === "string") add(start, value);
    },
    TemplateLiteral: ({ start, quasis, expressions }) => {
      const parts = quasis.map(({ value }, index) => {
        const inserted = expressions[index];
        return inserted === undefined ? value.raw : `${value.raw}\${${source.slice(inserted.start, inserted.end)}}`;
      });
      add(start, parts.join(""), quasis.map(({ value }) => value.raw).join(" · "));
    },
  });
  visitor.visit(parseSync(file, source).program);
  return found;
}
