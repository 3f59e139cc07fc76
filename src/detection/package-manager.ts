import semver from "semver";
import type { PackageJson } from "./package-json.ts";
import type { SourceTree } from "./source-tree.ts";

export type PackageManagerName = "npm" | "pnpm" | "yarn" | "yarn-modern" | "bun";

export interface PackageManager {
  readonly name: PackageManagerName;
  /** An exact version or a range of its package. Null: the version that the platform ships. */
  readonly version: string | null;
  readonly lockFile: string | null;
  /** Notes for the build log about the choice. */
  readonly notes: readonly string[];
}

type Family = "npm" | "pnpm" | "yarn" | "bun";

const lockFiles: readonly (readonly [string, Family])[] = [
  ["pnpm-lock.yaml", "pnpm"],
  ["yarn.lock", "yarn"],
  ["package-lock.json", "npm"],
  ["npm-shrinkwrap.json", "npm"],
  ["bun.lock", "bun"],
  ["bun.lockb", "bun"],
];

/** Chooses by package.json's `packageManager`, else by the lock file, else npm. */
export function choosePackageManager(manifest: PackageJson, tree: SourceTree): PackageManager {
  const present = lockFiles.filter(([file]) => tree.has(file));
  const wish = parseWish(manifest.packageManager) ?? parseWish(bunWish(tree));
  const found = wish ? present.find(([, name]) => name === wish.name) : present[0];
  const family = wish?.name ?? found?.[1] ?? "npm";
  const lockFile = found?.[0] ?? null;
  const lockText = lockFile === null ? "" : (tree.lock(lockFile)?.beginning ?? "");
  const chosen = byFamily(family, wish?.version ?? null, lockText);
  return {
    ...chosen,
    lockFile,
    notes: notesOn(
      present.map(([file]) => file),
      lockFile,
    ),
  };
}

function byFamily(family: Family, wished: string | null, lockText: string): Pick<PackageManager, "name" | "version"> {
  if (family === "bun") return { name: "bun", version: wished ?? "1" };
  if (family === "npm") return { name: "npm", version: wished };
  if (family === "pnpm") return { name: "pnpm", version: wished ?? pnpmRange(lockText) };
  const isModern = wished === null ? lockText.includes("__metadata:") : semver.gte(wished, "2.0.0");
  return isModern ? { name: "yarn-modern", version: wished ?? "4" } : { name: "yarn", version: wished ?? "1" };
}

/** Each pnpm version reads only the lock file formats of its time: 7 reads 5.x, 8 reads 6.0, 9 and later read 9.0. */
function pnpmRange(lockText: string): string {
  const format = /^lockfileVersion:[ \t]*['"]?(\d+)/m.exec(lockText)?.[1];
  if (format === "5") return "7";
  if (format === "6") return "8";
  return "10";
}

function bunWish(tree: SourceTree): string | null {
  const text = tree.text(".bun-version");
  return text === null ? null : `bun@${text.trim().replace(/^v/, "")}`;
}

/** Parses `pnpm@9.1.0+sha512.…` as Corepack writes it. The hash is ignored: the registry's integrity value is checked instead. */
function parseWish(text: string | null): { name: Family; version: string } | null {
  const match = /^(npm|pnpm|yarn|bun)@(\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[\w.-]{1,64})?)(?:\+|$)/.exec(text ?? "");
  if (!match) return null;
  return { name: match[1] as Family, version: match[2] as string };
}

function notesOn(present: readonly string[], lockFile: string | null): string[] {
  if (lockFile === null) return [];
  const others = present.filter((file) => file !== lockFile);
  return others.length === 0 ? [] : [`Using ${lockFile}; ${others.join(", ")} is not used.`];
}
