import { existsSync, readdirSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { runOk } from "../kit/exec.ts";
import { openPrivateLayers } from "../sandbox/private-layers.ts";

/** Folders of instances. They show trees of the image and store changes on one file system of limited size, which is deleted with them. */
export type PrivateFolders = Awaited<ReturnType<typeof openPrivateFolders>>;

const script = join(import.meta.dirname, "private-folder.sh");
const defaultBytes = 1024 * 1024 * 1024;

export async function openPrivateFolders(dir: string, bytes = defaultBytes) {
  const { template } = await openPrivateLayers(dir, bytes);
  const folderOf = (name: string) => join(dir, `app-${name}`);
  const run = (...words: readonly string[]) =>
    runOk({ file: "/bin/sh", args: [script, ...words] }, { timeoutMs: 60_000 });
  return {
    isAvailable: existsSync(template),
    /** Mounts a private folder over each tree for `owner` and returns their paths. Removes what an earlier start left under `name` first. */
    async open(name: string, trees: readonly string[], owner: number) {
      await run("close", folderOf(name));
      if (trees.length > 0) await run("open", folderOf(name), String(owner), template, ...trees);
      return trees.map((_, index) => join(folderOf(name), String(index + 1)));
    },
    async close(name: string) {
      if (existsSync(folderOf(name))) await run("close", folderOf(name));
    },
    /** Disk space that the changes use. */
    async changedBytes(name: string) {
      if (!existsSync(folderOf(name))) return 0;
      const { blocks, bfree, bsize } = await statfs(join(folderOf(name), "layer"));
      return (blocks - bfree) * bsize;
    },
    names: () => readdirSync(dir).flatMap((name) => (name.startsWith("app-") ? [name.slice("app-".length)] : [])),
  };
}
