import { BuildRefused } from "./failures.ts";
import type { SourceTree } from "./source-tree.ts";

/** The parts of a package.json that a build uses. Parts of an unexpected type count as absent. */
export interface PackageJson {
  readonly name: string | null;
  readonly main: string | null;
  readonly module: string | null;
  readonly packageManager: string | null;
  readonly enginesNode: string | null;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly hasWorkspaces: boolean;
  /** The fields that influence an install besides the lock file, as stable text. */
  readonly installInputs: string;
  /** A package.json with only those fields. */
  readonly installManifest: string;
}

const installFields = [
  "dependencies",
  "devDependencies",
  "optionalDependencies",
  "peerDependencies",
  "bundleDependencies",
  "bundledDependencies",
  "overrides",
  "resolutions",
  "pnpm",
  "allowScripts",
  "devEngines",
  "packageManager",
] as const;

/** Parses package.json; refuses with `package_json_invalid`. */
export function parsePackageJson(text: string): PackageJson {
  const value = parse(text);
  const engines = asRecord(value["engines"]);
  return {
    name: asText(value["name"]),
    main: asText(value["main"]),
    module: asText(value["module"]),
    packageManager: asText(value["packageManager"]),
    enginesNode: asText(engines["node"]),
    scripts: texts(value["scripts"]),
    dependencies: { ...texts(value["optionalDependencies"]), ...texts(value["dependencies"]) },
    devDependencies: texts(value["devDependencies"]),
    hasWorkspaces: value["workspaces"] !== undefined,
    installInputs: JSON.stringify(installFields.map((field) => value[field] ?? null)),
    installManifest: JSON.stringify(Object.fromEntries(installFields.map((field) => [field, value[field]]))),
  };
}

export function readPackageJson(tree: SourceTree): PackageJson {
  const text = tree.text("package.json");
  if (text !== null) return parsePackageJson(text);
  throw new BuildRefused("package_json_invalid", { summary: "package.json is a link, or too large to be one." });
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text.replace(/^\uFEFF/, ""));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch (error) {
    throw new BuildRefused("package_json_invalid", {
      summary: `package.json is not valid JSON: ${(error as Error).message}`,
    });
  }
  throw new BuildRefused("package_json_invalid", { summary: "package.json does not hold a JSON object." });
}

function asText(value: unknown): string | null {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : null;
}

/** Returns an object; an empty one for anything else. */
export function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function texts(value: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries(asRecord(value)).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}
