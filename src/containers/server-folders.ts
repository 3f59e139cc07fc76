import { existsSync, mkdirSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { unlessStatus, type DockerApi } from "../kit/docker-api.ts";
import { runOk } from "../kit/exec.ts";
import type { ProjectImage } from "../ports/runtime.ts";
import { labels, type DockerContext } from "./settings.ts";

/** Returns the image's folders that servers must be able to write to: logs, empty caches, nginx's own. Computed once per image, kept in `file`. */
export function serverFolders(
  { api, tag, runExclusive }: DockerContext,
  { image_ref }: ProjectImage,
  file: string,
): Promise<readonly string[]> {
  return runExclusive(file, async () => {
    if (existsSync(file)) return JSON.parse(await readFile(file, "utf8")) as string[];
    const body = { Image: image_ref, Cmd: ["-"], Labels: { [labels.runtime]: tag, [labels.role]: "tree" } };
    const { Id } = await api.call<{ Id: string }>({ method: "POST", path: "/containers/create", body });
    try {
      const found = await Promise.all([
        listing(api, Id, "/var/log").then((lines) => foldersIn("/var/log", lines, (entry) => entry === "l")),
        // Caches that the build filled stay read-only.
        listing(api, Id, "/var/cache").then((lines) => foldersIn("/var/cache", lines, (entry) => entry !== "d")),
        listing(api, Id, "/var/lib/nginx").then((lines) => (lines.length > 0 ? ["/var/lib/nginx"] : [])),
      ]);
      mkdirSync(dirname(file), { recursive: true, mode: 0o711 });
      await writeFile(file, JSON.stringify(found.flat()));
      return found.flat();
    } finally {
      await api.call({ method: "DELETE", path: `/containers/${Id}`, query: { force: true, v: true } });
    }
  });
}

/** Lists a container's folder as `tar --list --verbose` prints it, one line per entry; empty if the folder does not exist. */
async function listing(api: DockerApi, container: string, path: string): Promise<readonly string[]> {
  const archive = api.stream({ path: `/containers/${container}/archive`, query: { path }, timeoutMs: 0 });
  const stdin = await unlessStatus(archive, 404);
  if (stdin === undefined) return [];
  const { stdout } = await runOk({ file: "tar", args: ["--list", "--verbose", "--file=-"] }, { stdin });
  return stdout.split("\n").filter(Boolean);
}

/** Returns the direct subfolders of `parent` that contain no entry whose kind (first letter of its mode) `excludes` matches. */
export function foldersIn(
  parent: string,
  lines: readonly string[],
  excludes: (kind: string) => boolean,
): readonly string[] {
  const entries = lines.map((line) => /^(.)\S+ +\S+ +\S+ +\S+ +\S+ +[^/]+\/([^/]+)\/(.*)$/.exec(line)?.slice(1) ?? []);
  const without = entries.flatMap(([kind = "", folder, rest]) => (rest !== "" && excludes(kind) ? [folder] : []));
  const names = entries.flatMap(([kind, folder = "", rest]) => (kind === "d" && rest === "" ? [folder] : []));
  return names.filter((name) => /^[\w.+-]+$/.test(name) && !without.includes(name)).map((name) => `${parent}/${name}`);
}
