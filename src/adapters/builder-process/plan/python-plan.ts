import { createHash } from "node:crypto";
import semver from "semver";
import { parse } from "smol-toml";
import { BuildRefused } from "../failure-codes.ts";
import type { SourceTree } from "../source/source-tree.ts";
import type { Plan, Step } from "./plan.ts";

export interface PythonFacts {
  readonly tree: SourceTree;
  /** The machine's interpreter, as the sandbox sees it, and its version. */
  readonly interpreter: string;
  readonly version: string;
  /** Where the application lies in the sandbox. */
  readonly home: string;
  /** Whatever else decides what pip installs, such as its settings. */
  readonly settings: string;
}

/** Names of packages that the application declares, in lower case with `-`. */
export type Declared = ReadonlySet<string>;

interface Dependencies {
  /** Arguments of `pip install`. */
  readonly args: readonly string[];
  readonly from: string;
  readonly texts: readonly string[];
  readonly isReusable: boolean;
}

/** What installing and building a Python application takes: a virtual environment in `.venv`, and Django's static files. */
export function pythonPlan(facts: PythonFacts): Plan {
  const dependencies = findDependencies(facts.tree);
  checkVersion(facts);
  return {
    kind: "python",
    name: "Python app",
    notes: [`Python ${facts.version}, dependencies from ${dependencies.from}`],
    install: {
      folder: ".venv",
      key: installKey(facts, dependencies),
      steps: installSteps(facts, dependencies),
      again: [],
    },
    build: collectStatic(facts),
    prune: [],
  };
}

/** Whether this is a Python application: dependencies, Django's manage.py, or a bare script beside nothing else. */
export function isPython(tree: SourceTree): boolean {
  if (["requirements.txt", "Pipfile", "setup.py", "manage.py"].some((file) => tree.has(file))) return true;
  if (tree.has("pyproject.toml") && /^\[(?:project|tool\.poetry)\]/m.test(tree.text("pyproject.toml") ?? ""))
    return true;
  return (
    ["main.py", "app.py", "wsgi.py", "asgi.py"].some((file) => tree.has(file)) &&
    !tree.has("package.json") &&
    !tree.has("index.html")
  );
}

/** The packages that are named by the application itself; what those need in turn is not among them. */
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

function findDependencies(tree: SourceTree): Dependencies {
  if (tree.has("requirements.txt")) return fromRequirements(tree);
  const pyproject = tree.text("pyproject.toml");
  if (pyproject !== null) return fromPyproject(pyproject);
  if (tree.has("setup.py"))
    return { args: ["."], from: "setup.py", texts: [tree.text("setup.py") ?? ""], isReusable: false };
  const pipfile = tree.text("Pipfile");
  if (pipfile !== null) return fromPipfile(pipfile);
  return { args: [], from: "nowhere (no requirements.txt)", texts: [], isReusable: true };
}

function fromRequirements(tree: SourceTree): Dependencies {
  const lists = tree.paths.filter((path) => /^requirements[^/]*\.txt$/.test(path));
  const all = lists.flatMap((path) => tree.text(path) ?? []);
  // `.` and `-e` install the source itself, and a nested -r outside these files or a huge one is not seen: then every build installs.
  const namesMore = /^[ \t]*(?:-e|--editable|\.|-[rc][ \t]+(?!requirements[^/\s]*\.txt[ \t]*$)|file:)/m;
  const isReusable = all.length === lists.length && !namesMore.test(all.join("\n"));
  return { args: ["-r", "requirements.txt"], from: "requirements.txt", texts: all, isReusable };
}

function fromPyproject(text: string): Dependencies {
  const manifest = parseToml(text, "pyproject.toml");
  const project = asTable(manifest["project"]);
  const list = Array.isArray(project["dependencies"])
    ? project["dependencies"].filter((item) => typeof item === "string")
    : [];
  const isPackage = manifest["build-system"] !== undefined || manifest["project"] === undefined;
  if (isPackage) return { args: ["."], from: "pyproject.toml", texts: [JSON.stringify(manifest)], isReusable: false };
  return { args: list, from: "pyproject.toml", texts: list, isReusable: true };
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
  return { args, from: "Pipfile", texts: args, isReusable: true };
}

function parseToml(text: string, file: string): Record<string, unknown> {
  try {
    return parse(text);
  } catch (error) {
    const reason = (error as Error).message.split("\n")[0];
    throw new BuildRefused("pyproject_invalid", { summary: `${file} is not valid TOML: ${reason}` });
  }
}

function asTable(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

function checkVersion({ tree, version }: PythonFacts): void {
  const text = tree.text("pyproject.toml");
  const wish = text === null ? undefined : asTable(parseToml(text, "pyproject.toml")["project"])["requires-python"];
  if (typeof wish !== "string" || fitsPython(version, wish)) return;
  const summary = `pyproject.toml asks for Python ${wish}; this machine has ${version}.`;
  throw new BuildRefused("python_version_unavailable", { summary });
}

// Reading a range takes time with its square.
const longestWish = 256;

/** PEP 440's comma separated comparisons, as far as `requires-python` uses them. What cannot be read is taken as fitting: pip decides. */
export function fitsPython(version: string, wish: string): boolean {
  if (wish.length > longestWish) return true;
  const parts = wish.split(",").map((part) => part.trim().replace(/\s+/g, "").replace(/\.\*$/, ""));
  return parts.every((part) => {
    const range = part.startsWith("~=") ? compatible(part.slice(2)) : part.startsWith("==") ? part.slice(2) : part;
    if (part.startsWith("!=") || semver.validRange(range) === null) return true;
    return semver.satisfies(version, range);
  });
}

/** `~=3.10` allows 3.10 up to 4; `~=3.10.2` up to 3.11. */
function compatible(version: string): string {
  return version.split(".").length > 2 ? `~${version}` : `^${version}`;
}

function installKey(facts: PythonFacts, dependencies: Dependencies): string | null {
  if (!dependencies.isReusable) return null;
  const inputs = [
    process.arch,
    facts.interpreter,
    facts.version,
    facts.home,
    facts.settings,
    dependencies.args,
    dependencies.texts,
  ];
  return createHash("sha256").update(JSON.stringify(inputs)).digest("hex");
}

function installSteps({ interpreter, home }: PythonFacts, dependencies: Dependencies): Step[] {
  const python = `${home}/.venv/bin/python`;
  const shared = { stage: "install", env: { PYTHONDONTWRITEBYTECODE: "1" }, tool: "pip" } as const;
  const create: Step = {
    ...shared,
    title: "Creating a virtual environment",
    args: [interpreter, "-m", "venv", `${home}/.venv`],
    otherwise: "python_missing",
    quiet: true,
  };
  const install: Step = {
    ...shared,
    title: `Installing dependencies from ${dependencies.from}`,
    args: [
      python,
      "-m",
      "pip",
      "install",
      "--no-input",
      "--disable-pip-version-check",
      "--no-compile",
      "--progress-bar",
      "off",
      ...dependencies.args,
    ],
    otherwise: "install_failed",
  };
  // Time stamps in compiled files would make equal sources differ, and a read-only release cannot compile later.
  const compile: Step = {
    ...shared,
    title: "Compiling",
    args: [
      python,
      "-m",
      "compileall",
      "-q",
      "-f",
      "-j",
      "0",
      "--invalidation-mode",
      "unchecked-hash",
      `${home}/.venv/lib`,
    ],
    otherwise: "install_failed",
    quiet: true,
  };
  return dependencies.args.length === 0 ? [create, compile] : [create, install, compile];
}

function collectStatic({ tree, home }: PythonFacts): Step[] {
  const isDjango = tree.has("manage.py") && declaredPackages(tree).has("django");
  const hasRoot = tree.paths.some(
    (path) => path.endsWith(".py") && /^[ \t]*STATIC_ROOT[ \t]*=/m.test(tree.text(path) ?? ""),
  );
  if (!isDjango || !hasRoot) return [];
  return [
    {
      title: "Collecting static files: python manage.py collectstatic",
      stage: "build",
      args: [`${home}/.venv/bin/python`, "manage.py", "collectstatic", "--noinput"],
      env: {},
      tool: "script",
      otherwise: "build_script_failed",
    },
  ];
}
