import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

// The source of a build is byte-equal to the commit: no attribute in it may convert line ends or encodings. `export-subst` would besides
// let one commit's message fill a file many thousand times over. `!` leaves an attribute undefined; git refuses to unset an encoding.
const text = "* -export-subst -export-ignore -ident -text !eol !working-tree-encoding !filter\n";

/** Writes a repository's own attributes, which outrank those that are pushed (gitattributes(5)). */
export async function writeAttributes(repositoryDir: string): Promise<void> {
  const file = join(repositoryDir, "info", "attributes");
  if ((await readFile(file, "utf8").catch(() => "")) === text) return;
  await mkdir(join(repositoryDir, "info"), { recursive: true });
  await writeFile(file, text, { flush: true });
}
