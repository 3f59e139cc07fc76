import { readFileSync } from "node:fs";
import { parseSync } from "oxc-parser";

/** What a source file offers. */
export interface SourceModule {
  readonly file: string;
  readonly exports: readonly ExportedName[];
}

export interface ExportedName {
  readonly name: string;
  readonly isType: boolean;
  readonly line: number;
}

/** Reads one TypeScript or JavaScript file, named relative to the current folder. */
export function readModule(file: string): SourceModule {
  const text = readFileSync(file, "utf8");
  const entries = parseSync(file, text).module.staticExports.flatMap((statement) => statement.entries);
  const exports = entries.flatMap(({ exportName: { name }, isType, start }) =>
    name === null ? [] : [{ name, isType, line: text.slice(0, start).split("\n").length }],
  );
  return { file, exports };
}
