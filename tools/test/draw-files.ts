import type { TestFile } from "./test-files.ts";

/**
 * Of the files that declare such a row (test-files.ts) a usual run draws so many. docs/testing.md says what each row is.
 */
const drawnOf: Readonly<Record<string, number>> = { container: 2, "ordinary user": 1, S3: 1, operation: 2, journey: 3 };

export interface Drawn {
  readonly files: readonly TestFile[];
  /** Those that this run leaves out. */
  readonly others: readonly TestFile[];
}

/** All files without a row, and some of each row's, drawn anew each time. */
export function drawFiles(files: readonly TestFile[], random: () => number): Drawn {
  const rows = Map.groupBy(files, ({ row }) => row);
  const drawn = new Set(rows.get(""));
  for (const [row, members] of rows) {
    if (row === "") continue;
    const count = drawnOf[row];
    if (count === undefined) throw new Error(`no row of test files is called "${row}"`);
    for (const file of shuffle(members, random).slice(0, count)) drawn.add(file);
  }
  return { files: files.filter((file) => drawn.has(file)), others: files.filter((file) => !drawn.has(file)) };
}

function shuffle<T>(values: readonly T[], random: () => number): readonly T[] {
  const keyed = values.map((value) => ({ value, key: random() }));
  return keyed.toSorted((one, other) => one.key - other.key).map(({ value }) => value);
}
