/** The source as detection sees it: paths relative to the root, and the text of the few files that matter. */
export interface SourceTree {
  /** All files and links (not folders), sorted. */
  readonly paths: readonly string[];
  has(path: string): boolean;
  /** Returns a file's text; null if the file is missing, a link, too large, or not one that detection reads. */
  text(path: string): string | null;
  /** Returns the digest and beginning of a lock file or a package manager's settings; null as for `text`. */
  lock(path: string): LockFile | null;
}

/** A file of which only the digest and the first lines matter. */
export interface LockFile {
  readonly digest: string;
  readonly beginning: string;
}

/** How much of a lock file's text detection sees. */
export const lockBeginningBytes = 4096;

const manifests =
  /^(?:(?:docker-)?compose\.ya?ml|Pipfile|go\.mod|\.(?:python|go|php)-version|\.tool-versions|\.?mise\.toml|\.sdkmanrc|runtime\.txt|pyproject\.toml|mkdocs\.ya?ml|rust-toolchain(?:\.toml)?|system\.properties|\.java-version|\.bun-version|\.deno-version|\.dvmrc|\.ruby-version|Gemfile|composer\.json|deno\.jsonc?|(?:src\/)?(?:main|server|index|app|mod)\.[jt]sx?)$|\.py$|^(?:[^/]+\/){0,3}(?:package\.json|Procfile|\.nvmrc|\.node-version|[^/]+\.go|Cargo\.toml|pom\.xml|[^/]+\.gradle(?:\.kts)?)$/;
const locks =
  /^(?:\.npmrc|\.yarnrc|\.yarnrc\.yml|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|yarn\.lock|bun\.lockb?|deno\.lock|Gemfile\.lock)$/;
const requirements = /^(?:requirements[^/]*\.txt|(?:uv|poetry)\.lock)$/;

export function treeBelow(tree: SourceTree, folder: string): SourceTree {
  const at = (path: string) => `${folder}/${path}`;
  return {
    paths: tree.paths.flatMap((path) => (path.startsWith(at("")) ? [path.slice(at("").length)] : [])),
    has: (path) => tree.has(at(path)),
    text: (path) => tree.text(at(path)),
    lock: (path) => tree.lock(at(path)),
  };
}

/** Returns what looks like a Dockerfile, that at the root first. */
export function dockerfilesIn({ paths }: SourceTree): readonly string[] {
  const found = paths.filter((path) => dockerfiles.test(path) && !path.includes("node_modules/"));
  return found.toSorted((one, other) => one.split("/").length - other.split("/").length);
}

const dockerfiles =
  /^(?:[\w.-]+\/){0,2}(?:(?:Dockerfile|Containerfile)(?:\.(?!dockerignore$)[\w-]+)?|[\w-]+\.Dockerfile)$/i;
const skippedFolders = new Set(["node_modules", ".git", ".venv", "venv"]);

/** Returns how detection reads a file: its text, only its digest and beginning (`lock`), or not at all (null). */
export function readingOf(path: string): "manifest" | "requirements" | "lock" | null {
  if (locks.test(path)) return "lock";
  if (requirements.test(path)) return "requirements";
  return manifests.test(path) && !path.split("/").some((part) => skippedFolders.has(part)) ? "manifest" : null;
}

export function makeTree(
  paths: readonly string[],
  texts: ReadonlyMap<string, string>,
  locked: ReadonlyMap<string, LockFile>,
): SourceTree {
  const known = new Set(paths);
  return {
    paths,
    has: (path) => known.has(path),
    text: (path) => texts.get(path) ?? null,
    lock: (path) => locked.get(path) ?? null,
  };
}
