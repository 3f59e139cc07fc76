import type { TreeLimits } from "../../ports/repositories.ts";

export interface TreeScan {
  readonly entries: number;
  readonly bytes: number;
  readonly submodules: readonly string[];
  /** The first limit that the tree exceeds, if any. */
  readonly broken: "entries" | "bytes" | "path" | "paths" | null;
}

// Linux's PATH_MAX: a file with a longer path could never be unpacked.
const longestPath = 4096;
// At most this many submodules are recorded and reported to the pusher; more of them are no error.
const mostNamed = 100;

/** Counts a tree while git lists it, so that a tree bomb costs no more than the limits allow. */
export function createTreeScanner(limits: TreeLimits) {
  let rest: Buffer = Buffer.alloc(0);
  let entries = 0;
  let bytes = 0;
  let pathBytes = 0;
  let broken: TreeScan["broken"] = null;
  const submodules: string[] = [];

  const take = (record: string) => {
    const { mode, sizeBytes, path } = parse(record);
    entries += 1;
    bytes += sizeBytes;
    pathBytes += Buffer.byteLength(path);
    if (mode === "160000" && submodules.length < mostNamed) submodules.push(path);
    if (entries > limits.entries) broken = "entries";
    else if (bytes > limits.bytes) broken = "bytes";
    else if (Buffer.byteLength(path) > longestPath) broken = "path";
    else if (pathBytes > mostPathBytes) broken = "paths";
  };

  const add = (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = rest.indexOf(0); end >= 0 && broken === null; end = rest.indexOf(0, start)) {
      take(rest.toString("utf8", start, end));
      start = end + 1;
    }
    rest = rest.subarray(start);
    // An unterminated record means that the path is too long; stop, so that it does not fill the memory.
    if (rest.length > longestPath + 128) broken ??= "path";
    return broken === null;
  };

  return {
    /** Processes the next chunk of `ls-tree -z` output; returns false when a limit is exceeded and the rest need not be read. */
    add,
    result: () => ({ entries, bytes, submodules, broken }),
  };
}

/** How long all paths of a tree may be together, because a listing is held in memory; those of the Linux kernel take 4 MiB. */
export const mostPathBytes = 32 * 1024 * 1024;

function parse(record: string) {
  const tab = record.indexOf("\t");
  const [mode = "", , , size = "-"] = record.slice(0, tab).split(/ +/);
  return { mode, sizeBytes: size === "-" ? 0 : Number(size), path: record.slice(tab + 1) };
}
