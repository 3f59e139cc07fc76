import semver from "semver";
import { askedVersions, versionNotes } from "./asked-versions.ts";
import { BuildRefused } from "./failures.ts";
import type { SourceTree } from "./source-tree.ts";
import type { BuildPlan, BuiltFiles, Start, Step } from "./plan.ts";
import { hasSiteFile, pythonSite, siteStep, type PythonSite } from "./python-site.ts";
import { pythonStart } from "./python-start.ts";
import { poetrySteps } from "./python-poetry.ts";
import { uvSteps } from "./python-uv.ts";
import { asTable, parseToml } from "./parse-toml.ts";
import { declaredPackages, findDependencies, type Dependencies } from "./python-dependencies.ts";

export interface PythonFacts extends PythonOfMachine {
  readonly tree: SourceTree;
  readonly home: string;
}

/** The Python installation that the builder can use. */
export interface PythonOfMachine {
  /** The path of the machine's interpreter in the sandbox, and its version. */
  readonly interpreter: string;
  readonly version: string;
  /** Anything else that determines what pip installs, such as its settings. */
  readonly settings: string;
}

/** Returns the plan to install and build a Python application: a virtual environment in `.venv`, and Django's static files. */
export function pythonPlan(facts: PythonFacts): BuildPlan {
  const { tree, home } = facts;
  checkVersion(facts);
  const site = pythonStart(tree) === null ? pythonSite(tree, declaredPackages(tree)) : null;
  const dependencies = withGenerator(findDependencies(tree), site);
  return {
    kind: "python",
    name: site === null ? "Python app" : `${site.name} site`,
    notes: [
      `Python ${facts.version}, dependencies from ${dependencies.from}`,
      ...dependencies.notes,
      ...versionNotes(askedVersions(tree, "python"), "Python", facts.version),
    ],
    install: {
      folder: ".venv",
      inputs: installInputs(facts, dependencies),
      steps: installSteps(facts, dependencies),
      again: [],
      npmLockFile: null,
    },
    build: [...collectStatic(facts), ...(site === null ? [] : [siteStep(site, home)])],
    prune: [],
    tools: [],
    env: { ...pythonEnv, VIRTUAL_ENV: `${home}/.venv`, PYTHONPATH: home },
    start: (files) => start(tree, site, files),
  };
}

// FORWARDED_ALLOW_IPS makes gunicorn and uvicorn trust the forwarded scheme and address: only the edge reaches them.
const pythonEnv = { PYTHONUNBUFFERED: "1", PYTHONDONTWRITEBYTECODE: "1", FORWARDED_ALLOW_IPS: "*" };

function start(tree: SourceTree, site: PythonSite | null, files: BuiltFiles): Start {
  const found = pythonStart(tree);
  if (found !== null) return found;
  if (site === null) throw new BuildRefused("no_start_command", { hint: startHint });
  const { folder, command } = site;
  return { how: "static", folder, fallback: files.pages(folder) === 1 ? "index" : "none", because: command.join(" ") };
}

const startHint =
  "Name the application object `app` in app.py, main.py or wsgi.py, or add a Procfile with `web: <command>`, such as `web: gunicorn shop:app`.";

/** Adds the site's generator to what is installed, unless the source declares it or a package for it. */
function withGenerator(dependencies: Dependencies, site: PythonSite | null): Dependencies {
  const missing = site?.packages.filter((name) => !new RegExp(`\\b${name}\\b`).test(dependencies.texts.join())) ?? [];
  if (missing.length === 0 || dependencies.uv !== undefined || dependencies.poetry !== undefined) return dependencies;
  const notes = [...dependencies.notes, `The newest ${missing.join(", ")} is installed, because no file declares it`];
  return { ...dependencies, args: [...dependencies.args, ...missing], notes };
}

/** Returns whether this is a Python application: it has dependencies, Django's manage.py, or a bare script without package.json or index.html. */
export function isPython(tree: SourceTree): boolean {
  if (["requirements.txt", "Pipfile", "setup.py", "manage.py", "uv.lock", "poetry.lock"].some((file) => tree.has(file)))
    return true;
  if (tree.has("pyproject.toml") && /^\[(?:project|tool\.poetry)\]/m.test(tree.text("pyproject.toml") ?? ""))
    return true;
  return (
    (hasSiteFile(tree) || ["main.py", "app.py", "wsgi.py", "asgi.py"].some((file) => tree.has(file))) &&
    !tree.has("package.json") &&
    !tree.has("index.html")
  );
}

function checkVersion({ tree, version }: PythonFacts): void {
  const text = tree.text("pyproject.toml");
  const wish = text === null ? undefined : wishIn(parseToml(text, "pyproject.toml"));
  if (typeof wish !== "string" || fitsPython(version, wish)) return;
  const summary = `pyproject.toml asks for Python ${wish}; this machine has ${version}.`;
  throw new BuildRefused("python_version_unavailable", { summary });
}

function wishIn(manifest: Record<string, unknown>): unknown {
  const poetry = asTable(asTable(asTable(manifest["tool"])["poetry"])["dependencies"]);
  return asTable(manifest["project"])["requires-python"] ?? poetry["python"];
}

// Parsing a range takes quadratic time.
const longestWish = 256;

/** Evaluates the comparisons of PEP 440, as far as `requires-python` uses them. What can't be parsed counts as fitting: pip decides. */
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

function installInputs(facts: PythonFacts, dependencies: Dependencies): readonly unknown[] | null {
  if (!dependencies.isReusable) return null;
  const { args, texts, uv, poetry } = dependencies;
  return [
    facts.interpreter,
    facts.version,
    facts.home,
    facts.settings,
    args,
    texts,
    ...(uv === undefined ? [] : [uv]),
    ...(poetry === undefined ? [] : [poetry]),
  ];
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
  // Time stamps in compiled files would make equal sources differ, and a read-only release can't compile later.
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
  if (dependencies.poetry !== undefined)
    return [create, ...poetrySteps(dependencies.poetry, interpreter, home), compile];
  if (dependencies.uv !== undefined) return [create, ...uvSteps(dependencies.uv, home), compile];
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
