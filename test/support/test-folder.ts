import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";

/** Creates a temporary folder and removes it, with its content, after the tests of the file or `describe` that calls this. */
export function testFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `berth-${name}-`));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
