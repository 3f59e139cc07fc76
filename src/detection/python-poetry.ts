import type { Step } from "./plan.ts";
import { asTable } from "./parse-toml.ts";

export interface PoetryProject {
  /** The lock file; empty without one. */
  readonly lock: string;
  /** Whether the project itself is installed as a package, too. */
  readonly hasRoot: boolean;
}

/** Returns the steps to install with Poetry, which gets a separate environment, so that the image has only what the lock file names. */
export function poetrySteps({ hasRoot }: PoetryProject, interpreter: string, home: string): Step[] {
  const place = "/tmp/poetry";
  const pip = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"];
  const shared = { stage: "install", tool: "pip" } as const;
  const args = ["install", "--only", "main", "--no-interaction", "--no-ansi", ...(hasRoot ? [] : ["--no-root"])];
  return [
    {
      ...{ ...shared, title: "Creating an environment for Poetry", quiet: true, env: {}, otherwise: "python_missing" },
      args: [interpreter, "-m", "venv", place],
    },
    {
      ...{ ...shared, title: "Fetching Poetry", quiet: true, env: {}, otherwise: "install_failed" },
      args: [`${place}/bin/python`, ...pip, "poetry"],
    },
    {
      ...{ ...shared, title: `Installing dependencies: poetry ${args.join(" ")}` },
      args: [`${place}/bin/poetry`, ...args],
      env: {
        ...{ PYTHONDONTWRITEBYTECODE: "1", POETRY_CACHE_DIR: "/cache/poetry", POETRY_VIRTUALENVS_CREATE: "false" },
        ...{ VIRTUAL_ENV: `${home}/.venv`, POETRY_INSTALLER_RE_RESOLVE: "false" },
      },
      otherwise: "install_failed",
    },
  ];
}

/** Returns whether the project is written for Poetry. pip installs such a project only if it is a package. */
export function usesPoetry(manifest: Record<string, unknown>): boolean {
  return asTable(manifest["tool"])["poetry"] !== undefined;
}

/** Returns whether the project is installed as a package because it has scripts or packages of its own; other projects run from their folder. */
export function hasPoetryRoot(manifest: Record<string, unknown>, paths: readonly string[]): boolean {
  const poetry = asTable(asTable(manifest["tool"])["poetry"]);
  if (poetry["package-mode"] === false) return false;
  const project = asTable(manifest["project"]);
  const named = [poetry["packages"], poetry["scripts"], project["scripts"]].some((value) => value !== undefined);
  const name = [project["name"], poetry["name"]].find((value) => typeof value === "string") ?? "";
  const folder = `src/${(name as string).toLowerCase().replace(/[-.]+/g, "_")}/`;
  return named || paths.some((path) => path.startsWith(folder));
}

/** Returns whether everything that the lock file names comes from a registry. */
export function isPoetryFromRegistries(lock: string): boolean {
  return !/^type = "(?:directory|file|git|url)"/m.test(lock);
}
