import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

// A builder makes npm's compiled code once for a Node and an npm, with three seconds of processor time. The builders of tests would each make
// it anew, so they lend it to each other. Removing the folder is always safe.
const shared = fileURLToPath(new URL("../../node_modules/.cache/berth-test-npm-code", import.meta.url));
const folderIn = (toolsDir: string) => join(toolsDir, "compiled-code");

/** Gives a builder that is about to start with this folder of tools what an earlier one has made. */
export function lendNpmCode(toolsDir: string): void {
  if (existsSync(shared)) cpSync(shared, folderIn(toolsDir), { recursive: true });
}

/** Keeps what a builder has made, for the next ones. It must have settled. */
export function keepNpmCode(toolsDir: string): void {
  const folder = folderIn(toolsDir);
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => !name.endsWith(".making")) : [];
  for (const name of names) if (!existsSync(join(shared, name))) keep(join(folder, name), join(shared, name));
}

/** Another user's tests may not write here, and other tests may keep the same at this moment: their copy is as good. */
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
