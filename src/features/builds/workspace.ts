import { createGlob } from "../../kit/glob.ts";
import type { Quarantine, Repositories } from "../../ports/repositories.ts";

export interface Source {
  readonly project_id: string;
  readonly commit: string;
  readonly quarantine?: Quarantine | null;
}

const mostFiles = 100_000;
const largestBytes = 256 * 1024;

// Beside one of these, the folder is an application of its own: package managers' lock files, and what makes another builder's.
const ownFiles = [
  ...["package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb"],
  ...["Dockerfile", "requirements.txt", "pyproject.toml", "Pipfile", "manage.py", "Gemfile", "composer.json"],
  ...["go.mod", "Cargo.toml", "pom.xml", "build.gradle", "build.gradle.kts", "deno.json", "deno.jsonc"],
];

/** Returns whether the folder holds a package of the root's JavaScript workspace, without anything of its own that installs or builds. */
export async function isWorkspaceMember(
  repositories: Repositories,
  { project_id, commit, quarantine = null }: Source,
  folder: string,
): Promise<boolean> {
  if (folder === "") return false;
  const listed = await repositories.files(project_id, commit, mostFiles, { quarantine });
  const paths = new Set(listed.map(({ path }) => path));
  if (!["package.json", `${folder}/package.json`].every((path) => paths.has(path))) return false;
  if (ownFiles.some((name) => paths.has(`${folder}/${name}`))) return false;
  const textOf = async (path: string) =>
    (await repositories.read(project_id, commit, { path, maxBytes: largestBytes, quarantine }))?.toString() ?? "";
  const patterns = paths.has("pnpm-workspace.yaml")
    ? patternsOfPnpm(await textOf("pnpm-workspace.yaml"))
    : patternsOfManifest(await textOf("package.json"));
  return isListed(folder, patterns);
}

/** Returns the items of the list `packages`, read line by line: other lists and values of the file don't matter. */
function patternsOfPnpm(text: string): readonly string[] {
  const [, list = ""] = /^packages:[ \t]*(?:#.*)?\r?\n((?:[ \t]*(?:-.*|#.*)?\r?\n)*)/m.exec(`${text}\n`) ?? [];
  return [...list.matchAll(/^[ \t]*-[ \t]*(["']?)([^"'#\r\n]+?)\1[ \t]*(?:#.*)?\r?$/gm)].map(([, , item = ""]) => item);
}

function patternsOfManifest(text: string): readonly string[] {
  try {
    const { workspaces } = JSON.parse(text) as { workspaces?: unknown };
    const list: unknown = Array.isArray(workspaces) ? workspaces : (workspaces as { packages?: unknown })?.packages;
    return Array.isArray(list) ? list.filter((item) => typeof item === "string") : [];
  } catch {
    return [];
  }
}

function isListed(folder: string, patterns: readonly string[]): boolean {
  const work = { steps: 0 };
  const matches = (pattern: string) => createGlob(pattern.replace(/^\.?\/+|\/+$/g, ""), "braces").matches(folder, work);
  return (
    patterns.some((pattern) => !pattern.startsWith("!") && matches(pattern)) &&
    !patterns.some((pattern) => pattern.startsWith("!") && matches(pattern.slice(1)))
  );
}
