import type { SourceTree } from "./source-tree.ts";
import { declaredPackages, type Declared } from "./python-dependencies.ts";
import type { Start } from "./plan.ts";

const where = "${HOST:-0.0.0.0}:$PORT";
const hostAndPort = "--host ${HOST:-0.0.0.0} --port $PORT";
const moduleNames = [
  "app",
  "main",
  "wsgi",
  "asgi",
  "application",
  "server",
  "run",
  "api",
  "src/app",
  "src/main",
  "app/main",
  "app/app",
  "app/__init__",
];

/** The object in the source that a server such as gunicorn is given. */
interface Application {
  readonly target: string;
  readonly framework: "django" | "flask" | "asgi" | "wsgi";
  readonly path: string;
}

/** Returns how to start a Python application without a Procfile command; null if nothing indicates it. */
export function pythonStart(tree: SourceTree): Start | null {
  const packages = declaredPackages(tree);
  const application = django(tree) ?? findApplication(tree);
  if (application) return serve(application, packages, tree);
  const script = ["main.py", "app.py", "server.py", "run.py"].find((path) => tree.has(path));
  return script === undefined ? null : command(`python ${script}`, script);
}

function django(tree: SourceTree): Application | null {
  const found = tree.paths.filter((each) => /^(?:[A-Za-z_]\w*\/){1,3}wsgi\.py$/.test(each));
  const [path] = found.toSorted((a, b) => a.split("/").length - b.split("/").length);
  if (!tree.has("manage.py") || path === undefined) return null;
  return { target: `${moduleOf(path)}:application`, framework: "django", path };
}

function findApplication(tree: SourceTree): Application | null {
  const named = moduleNames.map((name) => `${name}.py`);
  const packages = tree.paths.filter(
    (path) => /^(?:src\/)?[A-Za-z_]\w*\/(?:__init__|main|app)\.py$/.test(path) && !path.startsWith("tests/"),
  );
  const others = tree.paths.filter((path) => /^(?!test_|conftest\.|setup\.)[A-Za-z_]\w*\.py$/.test(path));
  for (const path of new Set([...named, ...packages, ...others])) {
    const text = tree.text(path);
    const application = text === null ? null : applicationIn(path, text);
    if (application) return application;
  }
  return null;
}

const constructors = [
  {
    pattern:
      /^(\w+)(?:[ \t]*:[ \t]*[\w.]+)?[ \t]*=[ \t]*(?:\w+\.)?(?:FastAPI|Starlette|Litestar|Quart|Sanic|BlackSheep)\(/m,
    framework: "asgi",
  },
  { pattern: /^(\w+)(?:[ \t]*:[ \t]*[\w.]+)?[ \t]*=[ \t]*(?:flask\.)?Flask\(/m, framework: "flask" },
  // Dash's documentation names the WSGI application so.
  { pattern: /^(\w+)[ \t]*=[ \t]*\w+\.server[ \t]*$/m, framework: "wsgi" },
  {
    pattern: /^(\w+)[ \t]*=[ \t]*(?:bottle\.)?(?:Bottle|default_app|falcon\.App|get_wsgi_application)\(/m,
    framework: "wsgi",
  },
  { pattern: /^(\w+)[ \t]*=[ \t]*(?:\w+\.)?create_app\(/m, framework: "flask" },
  { pattern: /^def (create_app)\((?:\s{0,500}\)|[^)]{0,500}=)/m, framework: "flask" },
] as const;

function applicationIn(path: string, text: string): Application | null {
  for (const { pattern, framework } of constructors) {
    const name = pattern.exec(text)?.[1];
    if (name !== undefined)
      return { target: `${moduleOf(path)}:${name}${name === "create_app" ? "()" : ""}`, framework, path };
  }
  return null;
}

function moduleOf(path: string): string {
  return path
    .replace(/\.py$/, "")
    .replace(/\/__init__$/, "")
    .replaceAll("/", ".");
}

function serve(application: Application, packages: Declared, tree: SourceTree): Start {
  const { target, framework, path } = application;
  if (framework === "asgi") return serveAsgi(application, packages);
  if (packages.has("gunicorn"))
    return command(`gunicorn --bind ${where}${atOnce(tree)} ${quoted(target)}`, `gunicorn and ${path}`);
  if (packages.has("waitress"))
    return command(`waitress-serve --listen=${where} ${waitress(target)}`, `waitress and ${path}`);
  if (framework === "django")
    return command(`python manage.py runserver --noreload ${where}`, "manage.py (add gunicorn to serve visitors)");
  if (framework === "flask" && !listensItself(tree, path)) {
    return command(`flask --app ${quoted(target)} run ${hostAndPort}`, `${path} (add gunicorn to serve visitors)`);
  }
  return command(`python ${path}`, path);
}

function serveAsgi({ target, path }: Application, packages: Declared): Start {
  if (packages.has("hypercorn") && !packages.has("uvicorn"))
    return command(`hypercorn --bind ${where} ${target}`, `hypercorn and ${path}`);
  if (packages.has("granian"))
    return command(`granian --interface asgi ${hostAndPort} ${target}`, `granian and ${path}`);
  // FastAPI's extra `standard` installs uvicorn without the application naming it.
  if (packages.has("uvicorn") || packages.has("fastapi"))
    return command(`uvicorn ${hostAndPort} ${target}`, `uvicorn and ${path}`);
  return command(`python ${path}`, path);
}

/** Returns options for gunicorn, which by default serves one request at a time. Its keep-alive must exceed the edge's 2 s. */
function atOnce(tree: SourceTree): string {
  return tree.has("gunicorn.conf.py") ? "" : " --threads 8 --keep-alive 5";
}

/** Returns whether the script reads PORT itself; then it is run as it is. */
function listensItself(tree: SourceTree, path: string): boolean {
  const text = tree.text(path) ?? "";
  return /["']PORT["']/.test(text) && /\.run\(/.test(text);
}

function quoted(target: string): string {
  return target.endsWith("()") ? `'${target}'` : target;
}

function waitress(target: string): string {
  return target.endsWith("()") ? `--call ${target.slice(0, -2)}` : target;
}

function command(text: string, because: string): Start {
  return { how: "command", command: text, because };
}
