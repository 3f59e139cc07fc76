import type { TreeLimits } from "../../ports/repositories.ts";

/** What a walk over a tree has found so far. */
export interface TreeScan {
  readonly entries: number;
  readonly bytes: number;
  readonly submodules: readonly string[];
  /** The limit that the tree breaks, as soon as it is known to. */
  readonly broken: "entries" | "bytes" | "path" | null;
}

export interface TreeScanner {
  /** Takes the next piece of `ls-tree -z` output; false when a limit is broken and the rest need not be read. */
  add(chunk: Buffer): boolean;
  result(): TreeScan;
}

// Linux's PATH_MAX: a longer path could never be unpacked.
const longestPath = 4096;
// So many are named to the pusher or looked into; a tree with more of them is not wrong, only long-winded.
const mostNamed = 100;

/** Counts a tree while git lists it, so that a tree bomb costs no more than the limits allow. */
export function createTreeScanner(limits: TreeLimits): TreeScanner {
  let rest: Buffer = Buffer.alloc(0);
  let entries = 0;
  let bytes = 0;
  let broken: TreeScan["broken"] = null;
  const submodules: string[] = [];

  const take = (record: string) => {
    const { mode, sizeBytes, path } = parse(record);
    entries += 1;
    bytes += sizeBytes;
    if (mode === "160000" && submodules.length < mostNamed) submodules.push(path);
    if (entries > limits.entries) broken = "entries";
    else if (bytes > limits.bytes) broken = "bytes";
    else if (Buffer.byteLength(path) > longestPath) broken = "path";
  };

  const add = (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = rest.indexOf(0); end >= 0 && broken === null; end = rest.indexOf(0, start)) {
      take(rest.toString("utf8", start, end));
      start = end + 1;
    }
    rest = rest.subarray(start);
    // A record that never ends is a path that is too long, and must not be collected.
    if (rest.length > longestPath + 128) broken ??= "path";
    return broken === null;
  };

  return { add, result: () => ({ entries, bytes, submodules, broken }) };
}

function parse(record: string) {
  const tab = record.indexOf("\t");
  const [mode = "", , , size = "-"] = record.slice(0, tab).split(/ +/);
  return { mode, sizeBytes: size === "-" ? 0 : Number(size), path: record.slice(tab + 1) };
}
