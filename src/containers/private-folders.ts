import { existsSync, readdirSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { runOk } from "../kit/exec.ts";
import { openPrivateLayers } from "../sandbox/private-layers.ts";

/** Folders of instances. Each shows the image's tree and stores changes on a file system of limited size, which is deleted with it. */
export interface PrivateFolders {
  /** Whether this machine can create them. */
  readonly isAvailable: boolean;
  /** Mounts a private folder over `tree` for `owner` and returns its path. Removes what an earlier start left under `name` first. */
  open(name: string, tree: string, owner: number): Promise<string>;
  close(name: string): Promise<void>;
  /** Disk space that the changes use. */
  changedBytes(name: string): Promise<number>;
  names(): readonly string[];
}

const script = join(import.meta.dirname, "private-folder.sh");
const defaultBytes = 1024 * 1024 * 1024;

export async function openPrivateFolders(dir: string, bytes = defaultBytes): Promise<PrivateFolders> {
  const { template } = await openPrivateLayers(dir, bytes);
  const folderOf = (name: string) => join(dir, `app-${name}`);
  const run = (...words: readonly string[]) =>
    runOk({ file: "/bin/sh", args: [script, ...words] }, { timeoutMs: 60_000 });
  return {
    isAvailable: existsSync(template),
    async open(name, tree, owner) {
      await run("close", folderOf(name));
      await run("open", folderOf(name), tree, String(owner), template);
      return join(folderOf(name), "app");
    },
    async close(name) {
      if (existsSync(folderOf(name))) await run("close", folderOf(name));
    },
    async changedBytes(name) {
      if (!existsSync(folderOf(name))) return 0;
      const { blocks, bfree, bsize } = await statfs(join(folderOf(name), "layer"));
      return (blocks - bfree) * bsize;
    },
    names: () => readdirSync(dir).flatMap((name) => (name.startsWith("app-") ? [name.slice("app-".length)] : [])),
  };
}
