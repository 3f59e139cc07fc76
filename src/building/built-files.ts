import { type Dirent, lstatSync, opendirSync } from "node:fs";
import { join } from "node:path";
import type { BuiltFiles } from "../detection/plan.ts";
import { isPlain } from "./is-plain.ts";

/** Gives access to the files of a finished build without following links. A build may leave any number of files, so each operation is bounded. */
export function builtFiles(app: string): BuiltFiles {
  return {
    has: (path) => isPlain(app, path, "file"),
    mayExist: (path) => mayExist(app, path),
    folders: (path) => namesIn(app, path, (entry) => entry.isDirectory()),
    files: (path) => namesIn(app, path, (entry) => entry.isFile()),
    pages: (path) => (isPlain(app, path, "folder") ? countPages(join(app, path)) : 0),
  };
}

function namesIn(app: string, path: string, isWanted: (entry: Dirent) => boolean): string[] {
  if (!isPlain(app, path, "folder")) return [];
  return [...entriesIn(join(app, path))].flatMap((entry) => (isWanted(entry) ? [entry.name] : [])).sort();
}

function mayExist(app: string, path: string): boolean {
  let place = app;
  for (const part of path.split("/")) {
    place = join(place, part);
    const stats = lstatSync(place, { throwIfNoEntry: false });
    if (stats === undefined || stats.isSymbolicLink()) return stats !== undefined;
  }
  return true;
}

const mostEntries = 10_000;

function* entriesIn(folder: string) {
  const open = opendirSync(folder);
  try {
    for (let count = 0; count < mostEntries; count += 1) {
      const entry = open.readSync();
      if (entry === null) return;
      yield entry;
    }
  } finally {
    open.closeSync();
  }
}

/** Also returns 2 for a site that is too large to scan: it has more than one page. */
function countPages(root: string): number {
  const folders = [root];
  let pages = 0;
  let looked = 0;
  for (const folder of folders) {
    for (const entry of entriesIn(folder)) {
      if (entry.isDirectory()) folders.push(join(folder, entry.name));
      else if (/\.html?$/i.test(entry.name)) pages += 1;
      looked += 1;
      if (pages > 1 || looked > mostEntries) return 2;
    }
  }
  return pages;
}
