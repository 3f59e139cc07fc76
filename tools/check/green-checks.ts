import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { trackedFiles } from "./tracked-files.ts";

/** What was checked: a digest of every file that a check reads. Null when git can't list the files. */
export type Contents = string | null;

/** Installed packages, which git does not track. */
const packages = "node_modules/.package-lock.json";
/** Only the check of texts reads them. */
const documents = /^docs\/|^[^/]+\.md$/;

/** Digests the files below `root` and the version of Node.js; without documents for the checks that read none. */
export async function digestContents(root: string, withDocuments: boolean): Promise<Contents> {
  const tracked = await trackedFiles([], root).catch(() => null);
  if (tracked === null) return null;
  const files = tracked.filter((file) => withDocuments || !documents.test(file));
  const digest = createHash("sha256").update(process.version);
  for (const file of [...files, ...(existsSync(join(root, packages)) ? [packages] : [])]) {
    digest.update(`\0${file}\0`).update(
      createHash("sha256")
        .update(readFileSync(join(root, file)))
        .digest(),
    );
  }
  return digest.digest("hex");
}

/** Which checks were green, each with the contents that it was green for. Removing the file is always safe. */
export interface GreenChecks {
  has(name: string, contents: Contents): boolean;
  add(name: string, contents: Contents): void;
}

export function openGreenChecks(file: string): GreenChecks {
  const read = (): Record<string, string> => {
    try {
      return JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
    } catch {
      return {};
    }
  };
  return {
    has: (name, contents) => contents !== null && read()[name] === contents,
    add(name, contents) {
      if (contents === null) return;
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, JSON.stringify({ ...read(), [name]: contents }));
    },
  };
}
