import { keptByBerthignore, walkSource } from "../../contract/source-rules.ts";
import type { LocalFolder } from "./folder.ts";
import { tarOf, type TarMember } from "./tar.ts";

/** The files of a folder that `berth deploy --dir` would send, as a compressed archive. */
export interface PackedFolder {
  readonly name: string;
  readonly files: number;
  readonly archive: Blob;
  /** Tells it from the same folder, packed again. */
  readonly packedAt: number;
}

export async function packFolder(folder: LocalFolder | undefined): Promise<PackedFolder> {
  if (folder === undefined) throw new Error("This is not a folder with files. Choose the application's folder.");
  const members = await membersOf(folder);
  const packed = tarOf(members).stream().pipeThrough(new CompressionStream("gzip"));
  const archive = await new Response(packed).blob();
  return { name: folder.name, files: members.length, archive, packedAt: Date.now() };
}

async function membersOf(folder: LocalFolder): Promise<TarMember[]> {
  const paths = keptByBerthignore(await walkSource(folder), await folder.text(".berthignore"));
  if (paths.length === 0) throw new Error("The folder holds no file to deploy, or its ignore files name all of them.");
  const members: TarMember[] = [];
  for (const path of paths) {
    const content = await folder.file(path);
    // Browsers don't report which files are executable; scripts begin with these two characters.
    const executable = (await content.slice(0, 2).text()) === "#!";
    members.push({ path, content, executable });
  }
  return members;
}
