import type { PackageManager } from "./package-manager.ts";
import type { Tool } from "./plan.ts";

// pnpm copies packages instead of linking them, so that the application's tree shares no files with the store. CI disables prompts.
const pnpmEnv = { CI: "true", npm_config_package_import_method: "copy", npm_config_store_dir: "/cache/pnpm" };

const bunEnv = { BUN_INSTALL_CACHE_DIR: "/cache/bun" };

/** The package manager's variables for each of its commands. */
export function envOf({ name }: PackageManager): Readonly<Record<string, string>> {
  return name === "pnpm" ? pnpmEnv : name === "bun" ? bunEnv : {};
}

/** The command that installs: exactly the lock file's packages if `locked`, development dependencies too if `isFull`. */
export function installArgs(
  manager: PackageManager,
  how: { locked: boolean; isFull: boolean; hasDev: boolean },
): [string, ...string[]] {
  switch (manager.name) {
    case "npm":
      return [
        "npm",
        how.locked ? "ci" : "install",
        how.isFull ? "--include=dev" : "--omit=dev",
        "--no-audit",
        "--no-fund",
        "--no-progress",
      ];
    case "pnpm":
      return [
        "pnpm",
        "install",
        how.locked ? "--frozen-lockfile" : "--no-frozen-lockfile",
        how.isFull ? "--prod=false" : "--prod",
      ];
    case "yarn":
      return [
        "yarn",
        "install",
        ...(how.locked ? ["--frozen-lockfile"] : []),
        `--production=${!how.isFull}`,
        "--non-interactive",
        "--no-progress",
      ];
    case "yarn-modern":
      return how.isFull || !how.hasDev
        ? ["yarn", "install", ...(how.locked ? ["--immutable"] : [])]
        : ["yarn", "workspaces", "focus", "--production"];
    case "bun":
      return [
        ...["bun", "install", "--backend=copyfile", "--no-progress"],
        ...(how.locked ? ["--frozen-lockfile"] : []),
        ...(how.isFull ? [] : ["--production"]),
      ] as [string, ...string[]];
    default:
      return manager.name satisfies never;
  }
}

export function commandName(manager: PackageManager): string {
  return manager.name === "yarn-modern" ? "yarn" : manager.name;
}

/** The tool whose failures `classify` recognizes. */
export function toolOf(manager: PackageManager): Tool {
  return manager.name === "yarn-modern" ? "yarn" : manager.name;
}
