import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

// A builder compiles npm's code once per version of Node and npm, which takes three seconds of processor time. The builders of tests share
// the result through this cache. Removing the folder is safe.
const shared = fileURLToPath(new URL("../../node_modules/.cache/berth-test-npm-code", import.meta.url));
const folderIn = (toolsDir: string) => join(toolsDir, "compiled-code");

/** Copies compiled code of earlier builders into the tools folder of a builder that is about to start. */
export function lendNpmCode(toolsDir: string): void {
  if (existsSync(shared)) cpSync(shared, folderIn(toolsDir), { recursive: true });
}

/** Copies a builder's compiled code into the cache. The builder must have finished compiling. */
export function keepNpmCode(toolsDir: string): void {
  const folder = folderIn(toolsDir);
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => !name.endsWith(".making")) : [];
  for (const name of names) if (!existsSync(join(shared, name))) keep(join(folder, name), join(shared, name));
}

/** Ignores a cache that another user owns, and a copy that another test stores at the same time, because both copies are equal. */
function keep(source: string, target: string): void {
  try {
    mkdirSync(dirname(target), { recursive: true });
    const draft = mkdtempSync(join(dirname(shared), ".npm-code-"));
    chmodSync(draft, 0o755);
    cpSync(source, draft, { recursive: true });
    try {
      renameSync(draft, target);
    } finally {
      rmSync(draft, { recursive: true, force: true });
    }
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!["EACCES", "EROFS", "ENOTEMPTY", "EEXIST"].includes(code)) throw error;
  }
}
