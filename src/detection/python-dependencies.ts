import { asTable, parseToml } from "./parse-toml.ts";
import { hasPoetryRoot, isPoetryFromRegistries, usesPoetry, type PoetryProject } from "./python-poetry.ts";
import { isFromRegistries, type UvProject } from "./python-uv.ts";
import type { SourceTree } from "./source-tree.ts";

/** Names of the packages that the application declares, in lower case and with `-`. */
export type Declared = ReadonlySet<string>;

export interface Dependencies {
  /** Arguments for `pip install`. */
  readonly args: readonly string[];
  readonly from: string;
  readonly texts: readonly string[];
  readonly isReusable: boolean;
  /** Lines for the build log. */
  readonly notes: readonly string[];
  /** Set if uv installs instead of pip. */
  readonly uv?: UvProject;
  /** Set if Poetry installs instead of pip. */
  readonly poetry?: PoetryProject;
}

/** Returns the packages that the application itself declares, without their own dependencies. */
export function declaredPackages(tree: SourceTree): Declared {
  const texts = findDependencies(tree).texts.join("\n");
  const names = [...texts.matchAll(/(?:^|["'\s,[])([A-Za-z][A-Za-z0-9._-]*)/gm)].map((match) =>
    normalizeName(match[1] as string),
  );
  return new Set(names);
}

function normalizeName(name: string): string {
  return name.toLowerCase().replace(/[._-]+/g, "-");
}

export function findDependencies(tree: SourceTree): Dependencies {
  const pyproject = tree.text("pyproject.toml");
  if (pyproject !== null && tree.has("uv.lock")) return fromUv(pyproject, tree.text("uv.lock"));
  if (pyproject !== null && tree.has("poetry.lock")) return fromPoetry(pyproject, tree);
  if (tree.has("requirements.txt")) return fromRequirements(tree);
  if (pyproject !== null && usesPoetry(parseToml(pyproject, "pyproject.toml"))) return fromPoetry(pyproject, tree);
  if (pyproject !== null) return fromPyproject(pyproject);
  if (tree.has("setup.py"))
    return { args: ["."], from: "setup.py", texts: [tree.text("setup.py") ?? ""], isReusable: false, notes: [] };
  const pipfile = tree.text("Pipfile");
  if (pipfile !== null) return fromPipfile(pipfile);
  return { args: [], from: "nowhere (no requirements.txt)", texts: [], isReusable: true, notes: [] };
}

function fromRequirements(tree: SourceTree): Dependencies {
  const lists = tree.paths.filter((path) => /^requirements[^/]*\.txt$/.test(path));
  const all = lists.flatMap((path) => tree.text(path) ?? []);
  // Not reusable, so every build installs: `.` and `-e` install the source itself, and a nested -r outside these files, or a file too large
  // to read, is not seen.
  const namesMore = /^[ \t]*(?:-e|--editable|\.|-[rc][ \t]+(?!requirements[^/\s]*\.txt[ \t]*$)|file:)/m;
  const isReusable = all.length === lists.length && !namesMore.test(all.join("\n"));
  return { args: ["-r", "requirements.txt"], from: "requirements.txt", texts: all, isReusable, notes: [] };
}

function fromPyproject(text: string): Dependencies {
  const manifest = parseToml(text, "pyproject.toml");
  const project = asTable(manifest["project"]);
  const list = Array.isArray(project["dependencies"])
    ? project["dependencies"].filter((item) => typeof item === "string")
    : [];
  const isPackage = manifest["build-system"] !== undefined || manifest["project"] === undefined;
  const from = { from: "pyproject.toml", notes: [] };
  if (isPackage) return { ...from, args: ["."], texts: [JSON.stringify(manifest)], isReusable: false };
  return { ...from, args: list, texts: list, isReusable: true };
}

/** A lock file that is too large to read here makes every build install. */
function fromUv(pyproject: string, lock: string | null): Dependencies {
  const { texts } = fromPyproject(pyproject);
  const settings = asTable(asTable(parseToml(pyproject, "pyproject.toml")["tool"])["uv"]);
  const wish = settings["required-version"];
  // A bare version means exactly that version.
  const uv = typeof wish === "string" ? `uv${/^\d/.test(wish) ? "==" : ""}${wish}` : "uv";
  const isReusable = lock !== null && isFromRegistries(lock);
  return { args: [], from: "uv.lock", texts, isReusable, notes: [], uv: { uv, lock: lock ?? "" } };
}

function fromPoetry(pyproject: string, tree: SourceTree): Dependencies {
  const manifest = parseToml(pyproject, "pyproject.toml");
  const lock = tree.text("poetry.lock");
  const poetry = { lock: lock ?? "", hasRoot: hasPoetryRoot(manifest, tree.paths) };
  const isReusable = lock !== null && isPoetryFromRegistries(lock);
  const isLocked = tree.has("poetry.lock");
  const notes = isLocked ? [] : ["No poetry.lock: versions may change from build to build. Commit one."];
  const from = isLocked ? "poetry.lock" : "pyproject.toml";
  return { args: [], from, texts: [JSON.stringify(manifest)], isReusable, notes, poetry };
}

function fromPipfile(text: string): Dependencies {
  const packages = Object.entries(asTable(parseToml(text, "Pipfile")["packages"]));
  const args = packages.map(([name, wish]) => {
    const written = typeof wish === "string" ? wish : asTable(wish)["version"];
    const version = typeof written === "string" ? written : "*";
    const extras = asTable(wish)["extras"];
    const suffix = Array.isArray(extras) ? `[${extras.join(",")}]` : "";
    return `${name}${suffix}${version === "*" ? "" : version}`;
  });
  return { args, from: "Pipfile", texts: args, isReusable: true, notes: [] };
}
