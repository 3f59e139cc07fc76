import { TarIndex, type TarEntry } from "../../kit/tar-index.ts";

// A larger index would take too much memory to look through.
const mostFiles = 300_000;
const mostBytes = 32 * 1024 * 1024;
const partBytes = 1024 * 1024;

/** Makes the index of a tar archive while its bytes pass by: a line for each entry, in parts that end with a line. */
export class FileIndex {
  readonly #tar = new TarIndex();
  readonly #parts: Buffer[] = [];
  #lines: string[] = [];
  /** Of `#lines`. */
  #bytes = 0;
  #allBytes = 0;
  #files = 0;

  push(content: Buffer): void {
    if (this.#isTooLarge()) return;
    for (const { path, kind, size_bytes, modified, start, data, end, target } of this.#tar.push(content)) {
      const line = JSON.stringify([path, kind, size_bytes, modified, start, data, end, target]);
      this.#lines.push(line);
      this.#files += 1;
      this.#bytes += line.length;
      this.#allBytes += line.length;
      if (this.#bytes >= partBytes) this.#cut();
    }
  }

  /** Returns the parts, or null when there are too many files, or their names are too long. */
  end(): readonly Buffer[] | null {
    if (this.#lines.length > 0) this.#cut();
    return this.#isTooLarge() ? null : this.#parts;
  }

  #isTooLarge(): boolean {
    return this.#files > mostFiles || this.#allBytes > mostBytes;
  }

  #cut(): void {
    this.#parts.push(Buffer.from(this.#lines.map((line) => `${line}\n`).join("")));
    this.#lines = [];
    this.#bytes = 0;
  }
}

type Line = [string, TarEntry["kind"], number, number, number, number, number, string | null | undefined];

export function entryOf(line: string): TarEntry {
  const [path, kind, size_bytes, modified, start, data, end, target] = JSON.parse(line) as Line;
  const entry = { path, kind, size_bytes, modified, start, data, end };
  return typeof target === "string" ? { ...entry, target } : entry;
}

/** Returns what the lines of a path, and of paths below it, begin with. */
export function beginningsOf(path: string): { readonly own: string; readonly below: string } {
  return { own: `${JSON.stringify([path]).slice(0, -1)},`, below: JSON.stringify([`${path}/`]).slice(0, -2) };
}
