import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { run, runOk } from "../kit/exec.ts";
import { folderBytes } from "../kit/folder-bytes.ts";
import type { SandboxApp } from "./spec.ts";

export type PrivateLayers = Awaited<ReturnType<typeof openPrivateLayers>>;

/** Prepares layers of `bytes` in `folder` and removes templates of other sizes that earlier starts left. */
export async function openPrivateLayers(folder: string, bytes: number) {
  mkdirSync(folder, { recursive: true, mode: 0o711 });
  const template = join(folder, `empty-overlay-${bytes}.ext4`);
  for (const name of readdirSync(folder))
    if (name.startsWith("empty-") && !template.endsWith(name)) rmSync(join(folder, name), { recursive: true });
  if (process.geteuid?.() === 0 && !existsSync(template)) await makeTemplate(template, bytes);
  const copyOf = (id: string) => join(folder, `copy-${id}`);
  return {
    /** Image of a file system with an overlay's two empty folders, copied for one sandbox's changes. Missing if it was not created. */
    template,
    /** Without namespaces: copies the folder for one sandbox. */
    async copy(id: string, { source }: SandboxApp, owner: number): Promise<SandboxApp> {
      await rm(copyOf(id), { recursive: true, force: true });
      await runOk({ file: "cp", args: ["-a", "--reflink=auto", source, copyOf(id)] });
      if (process.geteuid?.() === 0) await runOk({ file: "chown", args: ["-R", `${owner}:${owner}`, copyOf(id)] });
      return { source: copyOf(id), access: "write" };
    },
    /** Returns how much disk space that copy uses. */
    copyBytes: async (id: string) => (await folderBytes(copyOf(id))) ?? 0,
    /** Removes that copy. Idempotent. */
    remove: (id: string) => rm(copyOf(id), { recursive: true, force: true }),
    /** The sandboxes that have a copy. */
    ids: () => readdirSync(folder).flatMap((name) => (name.startsWith("copy-") ? [name.slice("copy-".length)] : [])),
  };
}

/** Creates an ext4 image without a journal and with few inodes: its content never outlives the sandbox, and an empty one uses 150 KiB. */
async function makeTemplate(template: string, bytes: number): Promise<void> {
  const draft = `${template}.new`;
  writeFileSync(draft, "", { mode: 0o600 });
  truncateSync(draft, bytes);
  const content = `${template}.content`;
  for (const name of ["upper", "work"]) mkdirSync(join(content, name), { recursive: true, mode: 0o755 });
  const options = ["-O", "^has_journal,^resize_inode", "-E", "nodiscard,lazy_itable_init=1", "-m", "0", "-i", "8192"];
  const made = await run(
    { file: "mkfs.ext4", args: ["-q", "-F", ...options, "-d", content, draft] },
    { timeoutMs: 60_000 },
  ).catch(() => null);
  rmSync(content, { recursive: true });
  if (made?.exitCode === 0) renameSync(draft, template);
  else rmSync(draft, { force: true });
}
