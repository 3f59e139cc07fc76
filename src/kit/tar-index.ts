/** One entry of a tar archive, and where it stands in the archive, in bytes. */
export interface TarEntry {
  /** Below the archived folder, which is itself "". Bytes that are not UTF-8 are replaced. */
  readonly path: string;
  readonly kind: "file" | "sparse" | "folder" | "link" | "hard_link" | "other";
  readonly size_bytes: number;
  /** In seconds. */
  readonly modified: number;
  /** Where its headers, its content and what follows it begin. */
  readonly start: number;
  readonly data: number;
  readonly end: number;
  /** The path of the entry with its content, if it is a hard link. */
  readonly target?: string;
}

const block = 512;
// Longer names than Linux has are no names.
const longest = 64 * 1024;
const kinds: Readonly<Record<string, TarEntry["kind"]>> = {
  ...{ "\0": "file", "0": "file", "7": "file", S: "sparse", "5": "folder", "2": "link", "1": "hard_link" },
};

interface LongName {
  readonly kind: "L" | "K";
  left: number;
  readonly parts: Buffer[];
}
type Draft = Omit<TarEntry, "end" | "data"> & { readonly stored: number };

/**
 * Reads the headers of a tar archive in GNU's format while its bytes pass by. Throws when the bytes are no such archive. The package `tar`
 * leaves out sparse files, takes their further headers for the next entry, and does not say where an entry stands.
 */
export class TarIndex {
  #at = 0;
  #skip = 0;
  readonly #block = Buffer.alloc(block);
  #filled = 0;
  #start: number | null = null;
  #long: LongName | null = null;
  readonly #names: { L?: string; K?: string } = {};
  #sparse: Draft | null = null;
  #hasEnded = false;

  /** Returns the entries whose headers end in this part of the archive. */
  push(chunk: Buffer): TarEntry[] {
    const found: TarEntry[] = [];
    for (let from = 0; from < chunk.length && !this.#hasEnded;) {
      const count = Math.min(chunk.length - from, this.#skip > 0 ? this.#skip : block - this.#filled);
      if (this.#skip > 0) this.#skip -= count;
      else this.#filled += chunk.copy(this.#block, this.#filled, from, from + count);
      this.#at += count;
      from += count;
      if (this.#filled < block) continue;
      this.#filled = 0;
      const entry = this.#read(this.#block);
      if (entry !== undefined) found.push(entry);
    }
    return found;
  }

  #read(head: Buffer): TarEntry | undefined {
    if (this.#long !== null) return this.#readLong(this.#long, head);
    if (this.#sparse !== null) return head[504] ? undefined : this.#end(this.#sparse);
    if (head.every((byte) => byte === 0)) {
      this.#hasEnded = true;
      return undefined;
    }
    requireHeader(head);
    const type = String.fromCharCode(head[156] ?? 0);
    const stored = numberAt(head, 124, 12);
    this.#start ??= this.#at - block;
    if (type === "L" || type === "K") {
      if (stored > longest) throw new Error("a name in the archive is too long");
      this.#long = { kind: type, left: stored, parts: [] };
      return undefined;
    }
    const kind = kinds[type] ?? "other";
    const target = pathOf(this.#names.K ?? textAt(head, 157, 100));
    const draft = {
      ...{ path: pathOf(this.#names.L ?? textAt(head, 0, 100)), kind, modified: numberAt(head, 136, 12) },
      ...{ size_bytes: kind === "sparse" ? numberAt(head, 483, 12) : stored, start: this.#start, stored },
      ...(kind === "hard_link" ? { target } : {}),
    };
    if (kind !== "sparse" || !head[482]) return this.#end(draft);
    this.#sparse = draft;
    return undefined;
  }

  #readLong(long: LongName, part: Buffer): undefined {
    long.parts.push(Buffer.from(part.subarray(0, Math.min(block, long.left))));
    long.left -= block;
    if (long.left > 0) return;
    this.#names[long.kind] = textAt(Buffer.concat(long.parts), 0, longest);
    this.#long = null;
  }

  #end({ stored, ...entry }: Draft): TarEntry {
    this.#skip = Math.ceil(stored / block) * block;
    [this.#start, this.#sparse] = [null, null];
    delete this.#names.L;
    delete this.#names.K;
    return { ...entry, data: this.#at, end: this.#at + this.#skip };
  }
}

/** A part of a file that is no hole: where it begins in the file, and its length. */
export interface SparsePart {
  readonly offset: number;
  readonly bytes: number;
}

/** Returns the parts of a sparse file whose content the archive has, from its headers. */
export function sparseParts(headers: Buffer): SparsePart[] {
  // What precedes the entry's own header are long names, whose own headers have their lengths.
  let at = 0;
  while (["L", "K"].includes(String.fromCharCode(headers[at + 156] ?? 0)))
    at += block + Math.ceil(numberAt(headers, at + 124, 12) / block) * block;
  const parts: SparsePart[] = [];
  const add = (from: number, count: number) => {
    for (let place = from; place < from + count * 24 && headers[place]; place += 24)
      parts.push({ offset: numberAt(headers, place, 12), bytes: numberAt(headers, place + 12, 12) });
  };
  add(at + 386, 4);
  for (at += block; at < headers.length; at += block) add(at, 21);
  return parts;
}

function requireHeader(head: Buffer): void {
  // The checksum counts its own field as spaces.
  let sum = 8 * 32;
  for (const [at, byte] of head.entries()) if (at < 148 || at >= 156) sum += byte;
  if (sum !== numberAt(head, 148, 8)) throw new Error("the archive has a header with a wrong checksum");
}

const textAt = (head: Buffer, at: number, length: number) => {
  const field = head.subarray(at, at + length);
  const end = field.indexOf(0);
  return (end === -1 ? field : field.subarray(0, end)).toString();
};

/** A number is octal text, or else big-endian with the first bit set. */
function numberAt(head: Buffer, at: number, length: number): number {
  if ((head[at] ?? 0) < 128) return Number.parseInt(textAt(head, at, length).trim() || "0", 8);
  return Number(head.readBigInt64BE(at + length - 8));
}

const pathOf = (name: string) => name.replace(/^\.(?:\/|$)/, "").replace(/\/$/, "");
