import { compareNames } from "../../data/format.ts";

export interface SourceFile {
  readonly path: string;
  readonly size_bytes: number;
}

interface Entry {
  /** A folder's name ends with `/`. */
  readonly name: string;
  /** Null for a folder. */
  readonly sizeBytes: number | null;
}

/** Returns what is directly in a folder: folders first, then files, each by name. `folder` is `""` or ends with `/`. */
export function entriesOf(files: readonly SourceFile[], folder: string): Entry[] {
  const found = new Map<string, number | null>();
  for (const { path, size_bytes: sizeBytes } of files) {
    if (!path.startsWith(folder)) continue;
    const rest = path.slice(folder.length);
    const end = rest.indexOf("/");
    found.set(end < 0 ? rest : rest.slice(0, end + 1), end < 0 ? sizeBytes : null);
  }
  const entries = [...found].map(([name, sizeBytes]) => ({ name, sizeBytes }));
  const rank = ({ sizeBytes }: Entry) => (sizeBytes === null ? 0 : 1);
  return entries.toSorted((a, b) => rank(a) - rank(b) || compareNames(a.name, b.name));
}
