import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

// What is committed is what is built. `export-subst` would besides let one commit's message fill a file many thousand times over.
const text = "* -export-subst -export-ignore -ident\n";

/** Writes a repository's own attributes, which outrank those that are pushed (gitattributes(5)). */
export async function writeAttributes(repositoryDir: string): Promise<void> {
  const file = join(repositoryDir, "info", "attributes");
  if ((await readFile(file, "utf8").catch(() => "")) === text) return;
  await mkdir(join(repositoryDir, "info"), { recursive: true });
  await writeFile(file, text, { flush: true });
}
