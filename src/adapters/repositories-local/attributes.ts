import { randomBytes } from "node:crypto";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openFolder, readSmallFile } from "../../kit/open-folder.ts";

// A build's source must be byte-equal to the commit, so no attribute in it may convert line endings or encodings. `export-subst` could also
// make one commit's message fill a file many thousand times over. `!` leaves an attribute undefined; git can't unset an encoding.
const text = "* -export-subst -export-ignore -ident -text !eol !working-tree-encoding !filter\n";

/** Writes a repository's own attributes, which override those in pushed files (gitattributes(5)). */
export async function writeAttributes(repositoryDir: string): Promise<void> {
  await mkdir(join(repositoryDir, "info")).catch(() => {});
  await using info = await openFolder(repositoryDir, "info");
  if (info === undefined) throw new Error("the folder for git's attributes cannot be made");
  const file = `${info.path}/attributes`;
  if ((await readSmallFile(file))?.toString() === text) return;
  const draft = `${file}.${randomBytes(4).toString("hex")}`;
  await writeFile(draft, text, { flush: true, flag: "wx", mode: 0o644 });
  await rename(draft, file);
}
