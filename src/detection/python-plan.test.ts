import assert from "node:assert/strict";
import { test } from "node:test";
import type { SourceTree } from "./source-tree.ts";
import { testTree } from "../../test/support/source-tree.ts";
import { fitsPython, isPython, pythonPlan } from "./python-plan.ts";
import { pythonStart } from "./python-start.ts";

const home = "/app";
const noFiles = { has: () => false, mayExist: () => true, folders: () => [], files: () => [], pages: () => 0 };
const plan = (files: Record<string, string>) =>
  pythonPlan({ tree: testTree(files), interpreter: "/usr/bin/python3", version: "3.11.2", home: "/app", settings: "" });
const pip = (files: Record<string, string>) =>
  plan(files)
    .install?.steps.find((step) => step.args.includes("pip"))
    ?.args.slice(9)
    .join(" ");
const start = (files: Record<string, string>) => {
  const found = pythonStart(testTree(files));
  return found?.how === "command" ? found.command : null;
};

test("requirements.txt comes before pyproject.toml before Pipfile", () => {
  assert.equal(pip({ "requirements.txt": "flask", "pyproject.toml": "" }), "-r requirements.txt");
  assert.equal(pip({ "pyproject.toml": '[project]\nname="x"\ndependencies=["flask>=3","a"]' }), "flask>=3 a");
  assert.equal(pip({ "pyproject.toml": '[project]\nname="x"\n[build-system]\nrequires=[]' }), ".");
  assert.equal(
    pip({ Pipfile: '[packages]\nflask = "*"\nb = "==1.0"\nuvicorn = {extras=["standard"], version=">=1"}' }),
    "flask b==1.0 uvicorn[standard]>=1",
  );
});

test("uv.lock comes before all, is kept by its content, and every source that is no registry installs anew", () => {
  const pyproject = '[project]\nname="x"\ndependencies=["flask","gunicorn"]\n';
  const lock = (source: string) => `[[package]]\nname = "x"\nversion = "1"\nsource = { ${source} }\n`;
  const files = { "pyproject.toml": pyproject, "uv.lock": lock('virtual = "."'), "requirements.txt": "a" };
  const steps = (wish = "") =>
    plan({ ...files, "pyproject.toml": pyproject + wish }).install?.steps.map(({ args }) => args.join(" ")) ?? [];
  assert.match(steps()[2] ?? "", /^\/tmp\/uv\/bin\/uv sync --locked --no-dev --no-editable /);
  assert.match(steps()[1] ?? "", / --target \/tmp\/uv uv$/);
  assert.match(steps('[tool.uv]\nrequired-version = ">=0.9"\n')[1] ?? "", / uv>=0\.9$/);
  assert.match(steps('[tool.uv]\nrequired-version = "0.9.1"\n')[1] ?? "", / uv==0\.9\.1$/);
  const inputs = (source: string) => plan({ ...files, "uv.lock": lock(source) }).install?.inputs;
  const registry = 'registry = "https://pypi.org/simple"';
  assert.notDeepEqual(inputs(registry), inputs('virtual = "."'));
  assert.notEqual(inputs(registry), null);
  for (const source of ['editable = "."', 'virtual = "member"', 'git = "https://example.org/x"'])
    assert.equal(inputs(source), null, source);
  assert.match(start({ ...files, "app.py": "app = Flask(__name__)" }) ?? "", /^gunicorn /);
});

test("an install that depends on the source is not reused", () => {
  assert.notEqual(plan({ "requirements.txt": "flask\n-r requirements-base.txt" }).install?.inputs, null);
  assert.equal(plan({ "requirements.txt": "-e ." }).install?.inputs, null);
  assert.equal(plan({ "requirements.txt": "-r ../other.txt" }).install?.inputs, null);
  assert.notEqual(
    JSON.stringify(plan({ "requirements.txt": "flask" }).install?.inputs),
    JSON.stringify(plan({ "requirements.txt": "django" }).install?.inputs),
  );
});

test("Django's static files are collected when it has a place for them", () => {
  const files = { "manage.py": "", "requirements.txt": "Django", "site/settings.py": "STATIC_ROOT = 'x'" };
  assert.equal(plan(files).build[0]?.args.slice(1).join(" "), "manage.py collectstatic --noinput");
  assert.deepEqual(plan({ ...files, "site/settings.py": "" }).build, []);
});

test("settings of tools in pyproject.toml do not make a Python application", () => {
  assert.equal(isPython(testTree({ "pyproject.toml": "[tool.ruff]", "package.json": "{}" })), false);
  assert.equal(isPython(testTree({ "app.py": "" })), true);
  assert.equal(isPython(testTree({ "app.py": "", "index.html": "" }) satisfies SourceTree), false);
});

test("requires-python is compared with the machine's Python", () => {
  assert.ok(fitsPython("3.11.2", ">=3.9,<4"));
  assert.ok(fitsPython("3.11.2", "~=3.10"));
  assert.ok(fitsPython("3.11.2", "==3.11.*"));
  assert.ok(!fitsPython("3.11.2", ">=3.12"));
  assert.ok(!fitsPython("3.11.2", "~=3.10.1"));
});

const where = "${HOST:-0.0.0.0}";
for (const [name, files, command] of [
  [
    "Flask with gunicorn",
    { "app.py": "app = Flask(__name__)", "requirements.txt": "flask\ngunicorn==1" },
    `gunicorn --bind ${where}:$PORT --threads 8 --keep-alive 5 app:app`,
  ],
  [
    "Flask alone",
    { "main.py": "web = Flask(__name__)", "requirements.txt": "flask" },
    `flask --app main:web run --host ${where} --port $PORT`,
  ],
  [
    "Flask that listens itself",
    { "main.py": "app = Flask(__name__)\napp.run(port=os.environ['PORT'])", "requirements.txt": "flask" },
    "python main.py",
  ],
  [
    "a Flask factory",
    { "blog/__init__.py": "def create_app():", "requirements.txt": "flask\ngunicorn" },
    `gunicorn --bind ${where}:$PORT --threads 8 --keep-alive 5 'blog:create_app()'`,
  ],
  [
    "FastAPI",
    { "main.py": "app = FastAPI()", "requirements.txt": "fastapi[standard]" },
    `uvicorn --host ${where} --port $PORT main:app`,
  ],
  [
    "FastAPI in a package",
    { "app/main.py": "api: FastAPI = FastAPI(title='x')", "requirements.txt": "uvicorn" },
    `uvicorn --host ${where} --port $PORT app.main:api`,
  ],
  [
    "Django with gunicorn",
    { "manage.py": "", "shop/wsgi.py": "", "requirements.txt": "django\ngunicorn" },
    `gunicorn --bind ${where}:$PORT --threads 8 --keep-alive 5 shop.wsgi:application`,
  ],
  [
    "Django alone",
    { "manage.py": "", "shop/wsgi.py": "", "requirements.txt": "django" },
    `python manage.py runserver --noreload ${where}:$PORT`,
  ],
  [
    "Dash with gunicorn",
    { "app.py": "app = Dash(__name__)\nserver = app.server\n", "requirements.txt": "dash\ngunicorn" },
    `gunicorn --bind ${where}:$PORT --threads 8 --keep-alive 5 app:server`,
  ],
  [
    "Flask made by a factory of a package, in a file of another name",
    { "shop.py": "from web import create_app\napp = create_app()", "requirements.txt": "flask\ngunicorn" },
    `gunicorn --bind ${where}:$PORT --threads 8 --keep-alive 5 shop:app`,
  ],
  [
    "Django whose settings are in a nested package",
    { "manage.py": "", "site/config/wsgi.py": "", "requirements.txt": "django\ngunicorn" },
    `gunicorn --bind ${where}:$PORT --threads 8 --keep-alive 5 site.config.wsgi:application`,
  ],
  ["a script", { "main.py": "print()", "requirements.txt": "" }, "python main.py"],
  ["nothing to start", { "lib.py": "", "requirements.txt": "" }, null],
] as const) {
  test(`starting ${name}`, () => assert.equal(start(files), command));
}

test("poetry.lock is installed by Poetry, the project itself only where it is a package", () => {
  const poetry = `[tool.poetry]\nname = "shop"\npackage-mode = false\n[tool.poetry.dependencies]\npython = "^3.9"\nflask = "3"\n`;
  const files = { "pyproject.toml": poetry, "poetry.lock": "", "requirements.txt": "other", "app.py": "" };
  const of = (changed: Record<string, string> = {}) => plan({ ...files, ...changed });
  const command = (changed?: Record<string, string>) => of(changed).install?.steps.at(-2)?.args.join(" ");
  assert.match(command() ?? "", /\/bin\/poetry install --only main .* --no-root$/);
  const packaged = { "pyproject.toml": poetry.replace("package-mode = false\n", ""), "src/shop/__init__.py": "" };
  assert.doesNotMatch(command(packaged) ?? "", /--no-root/);
  assert.notDeepEqual(of().install?.inputs, of({ "poetry.lock": "changed" }).install?.inputs);
  assert.equal(of({ "poetry.lock": `[package.source]\ntype = "directory"\n` }).install?.inputs, null);
  assert.throws(() => of({ "pyproject.toml": poetry.replace("^3.9", "^2.7") }), { code: "python_version_unavailable" });
});

test("Poetry installs a project of its own format without a lock file, and the log says so", () => {
  const poetry =
    '[tool.poetry]\npackage-mode = false\n[tool.poetry.dependencies]\nflask = "3"\n[build-system]\nrequires=[]\n';
  const { install, notes } = plan({ "pyproject.toml": poetry, "app.py": "" });
  assert.match(install?.steps.at(-2)?.args.join(" ") ?? "", /poetry install --only main .* --no-root$/);
  assert.equal(install?.inputs, null);
  assert.match(notes.join(), /No poetry\.lock/);
});

test("commands find the application's own modules, wherever their program is", () => {
  assert.equal(plan({ "requirements.txt": "alembic", "main.py": "" }).env["PYTHONPATH"], home);
});

test("a site is built by its generator and served as files, unless the source has an application", () => {
  const built = (files: Record<string, string>) => {
    const { build, install, start: starts } = plan(files);
    const started = starts({ ...noFiles, pages: () => 2 });
    return [
      install?.steps
        .find(({ args }) => args.includes("pip"))
        ?.args.slice(9)
        .join(" "),
      build.at(-1)?.args.join(" ").replace(`${home}/.venv/bin/`, ""),
      started.how === "static" ? started.folder : started.command,
    ];
  };
  assert.deepEqual(built({ "mkdocs.yml": "site_name: x\n" }), ["mkdocs", "mkdocs build --site-dir site", "site"]);
  const material = "theme:\n  features: []\n  name: material\nsite_dir: public\n";
  assert.deepEqual(built({ "mkdocs.yml": material }), ["mkdocs-material", "mkdocs build --site-dir public", "public"]);
  const declared = { "mkdocs.yml": "theme: material\n", "requirements.txt": "mkdocs-material==9" };
  assert.deepEqual(built(declared), ["-r requirements.txt", "mkdocs build --site-dir site", "site"]);
  assert.deepEqual(built({ "hugo.toml": "", "content/x.md": "" }), ["hugo", "hugo --gc --minify", "public"]);
  assert.deepEqual(built({ "docs/source/conf.py": "", "requirements.txt": "sphinx" }).slice(1), [
    "sphinx-build -b html docs/source _site",
    "_site",
  ]);
  assert.deepEqual(built({ "pelicanconf.py": "", "requirements.txt": "pelican[markdown]" }).slice(1), [
    "pelican content --settings pelicanconf.py --output output",
    "output",
  ]);
  assert.ok(
    isPython(testTree({ "mkdocs.yml": "" })) && !isPython(testTree({ "mkdocs.yml": "", "package.json": "{}" })),
  );
  assert.match(start({ "mkdocs.yml": "", "app.py": "app = Flask(x)", "requirements.txt": "flask" }) ?? "", /^flask/);
});
