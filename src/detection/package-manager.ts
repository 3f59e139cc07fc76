import semver from "semver";
import type { Asked, PackageJson } from "./package-json.ts";
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

/** Chooses by what package.json or .bun-version asks for, else by the lock file, else npm. */
export function choosePackageManager(manifest: PackageJson, tree: SourceTree): PackageManager {
  const present = lockFiles.filter(([file]) => tree.has(file));
  const wishes = [...manifest.packageManagers, ...bunWish(tree)].map((each) => ({
    ...each,
    wish: parseWish(each.text),
  }));
  const counts = wishes.find((each) => each.wish !== null);
  const wish = counts?.wish ?? null;
  const found = wish ? present.find(([, name]) => name === wish.name) : present[0];
  const family = wish?.name ?? found?.[1] ?? "npm";
  const lockFile = found?.[0] ?? null;
  const lockText = lockFile === null ? "" : (tree.lock(lockFile)?.beginning ?? "");
  const chosen = byFamily(family, wish?.version ?? null, lockText);
  return {
    ...chosen,
    lockFile,
    notes: [
      ...wishes.flatMap((each) => {
        if (each.wish === null) return [`${each.from} says ${JSON.stringify(each.text)}, which Berth cannot read`];
        if (wish === null || each === counts || isSame(each.wish, wish)) return [];
        return [`${each.text} (${each.from}) is not used: ${counts?.text} (${counts?.from}) counts`];
      }),
      ...notesOn(
        present.map(([file]) => file),
        lockFile,
      ),
    ],
  };
}

function byFamily(family: Family, wished: string | null, lockText: string): Pick<PackageManager, "name" | "version"> {
  if (family === "bun") return { name: "bun", version: wished ?? "1" };
  if (family === "npm") return { name: "npm", version: wished };
  if (family === "pnpm") return { name: "pnpm", version: wished ?? pnpmRange(lockText) };
  const isModern =
    wished === null ? lockText.includes("__metadata:") : semver.gte(semver.minVersion(wished) ?? "1.0.0", "2.0.0");
  return isModern ? { name: "yarn-modern", version: wished ?? "4" } : { name: "yarn", version: wished ?? "1" };
}

/** Each pnpm version reads only the lock file formats of its time: 7 reads 5.x, 8 reads 6.0, 9 and later read 9.0. */
function pnpmRange(lockText: string): string {
  const format = /^lockfileVersion:[ \t]*['"]?(\d+)/m.exec(lockText)?.[1];
  if (format === "5") return "7";
  if (format === "6") return "8";
  return "10";
}

function bunWish(tree: SourceTree): Asked[] {
  const text = tree.text(".bun-version");
  return text === null ? [] : [{ text: `bun@${text.trim().replace(/^v/, "")}`.slice(0, 100), from: ".bun-version" }];
}

interface Wish {
  readonly name: Family;
  /** An exact version or a range. */
  readonly version: string;
}

/** Parses `pnpm@9.1.0+sha512.…` as Corepack writes it, or a range. The hash is ignored: the registry's integrity value is checked. */
function parseWish(text: string): Wish | null {
  const [, name, written = ""] = /^(npm|pnpm|yarn|bun)@([^+]{1,100})(?:\+|$)/.exec(text) ?? [];
  const version = semver.valid(written) ?? semver.validRange(written);
  return name === undefined || version === null || version === "*" ? null : { name: name as Family, version };
}

const isSame = (one: Wish, other: Wish): boolean =>
  one.name === other.name && semver.intersects(one.version, other.version);

function notesOn(present: readonly string[], lockFile: string | null): string[] {
  if (lockFile === null) return [];
  const others = present.filter((file) => file !== lockFile);
  return others.length === 0 ? [] : [`Using ${lockFile}; ${others.join(", ")} is not used.`];
}
