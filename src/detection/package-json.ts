import { BuildRefused } from "./failures.ts";
import type { SourceTree } from "./source-tree.ts";

/** The parts of a package.json that a build uses. Parts of an unexpected type count as absent. */
export interface PackageJson {
  readonly name: string | null;
  readonly main: string | null;
  readonly module: string | null;
  /** What asks for a package manager, such as `pnpm@9.1.0`, in the order in which it counts. */
  readonly packageManagers: readonly Asked[];
  /** What asks for a version of Node.js, in the order in which it counts. */
  readonly nodeVersions: readonly Asked[];
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly hasWorkspaces: boolean;
  /** The fields that influence an install besides the lock file, as stable text. */
  readonly installInputs: string;
  /** A package.json with only those fields. */
  readonly installManifest: string;
}

/** A version that the source asks for, as written, and where. */
export interface Asked {
  readonly text: string;
  readonly from: string;
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
  const [engines, volta] = [asRecord(value["engines"]), asRecord(value["volta"])];
  return {
    name: asText(value["name"]),
    main: asText(value["main"]),
    module: asText(value["module"]),
    packageManagers: [
      ...asked("packageManager", value["packageManager"]),
      // npm itself checks what is asked of it.
      ...inDevEngines(value, "packageManager").filter(({ text }) => !text.startsWith("npm@")),
      ...["pnpm", "yarn", "npm"].flatMap((name) => asked(`volta.${name}`, volta[name], `${name}@`)),
    ],
    nodeVersions: [
      ...asked("engines.node", engines["node"]),
      ...asked("volta.node", volta["node"]),
      ...inDevEngines(value, "runtime").flatMap(({ text, from }) =>
        text.startsWith("node@") ? [{ from, text: text.slice("node@".length) }] : [],
      ),
    ],
    scripts: texts(value["scripts"]),
    dependencies: { ...texts(value["optionalDependencies"]), ...texts(value["dependencies"]) },
    devDependencies: texts(value["devDependencies"]),
    hasWorkspaces: value["workspaces"] !== undefined,
    installInputs: JSON.stringify(installFields.map((field) => value[field] ?? null)),
    installManifest: JSON.stringify(Object.fromEntries(installFields.map((field) => [field, value[field]]))),
  };
}

function asked(field: string, written: unknown, prefix = ""): Asked[] {
  const text = asText(written);
  return text === null ? [] : [{ text: `${prefix}${text}`, from: `${field} in package.json` }];
}

/** Reads npm's `devEngines`: one tool or a list of them, each with a name and perhaps a range. */
function inDevEngines(manifest: Record<string, unknown>, kind: "runtime" | "packageManager"): Asked[] {
  return [asRecord(manifest["devEngines"])[kind]]
    .flat()
    .map(asRecord)
    .flatMap(({ name, version }) => asked(`devEngines.${kind}`, version, `${asText(name)}@`));
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
