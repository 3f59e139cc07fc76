import assert from "node:assert/strict";
import { test } from "node:test";
import { testTree } from "../../test/support/source-tree.ts";
import { nodePlan } from "./node-plan.ts";
import { installKey, type BuiltFiles } from "./plan.ts";
import { choosePackageManager } from "./package-manager.ts";
import { parsePackageJson } from "./package-json.ts";

function plan(manifest: object, files: Record<string, string> = {}) {
  const made = nodePlan(testTree({ "package.json": JSON.stringify(manifest), ...files }));
  return {
    ...made,
    key: (tools = "node 24.1.0") => made.install && installKey(made.install, [tools]),
    commands: [...(made.install?.steps ?? []), ...made.build, ...made.prune].map((step) =>
      step.args.join(" ").replace(/ --no-(audit|fund|progress)/g, ""),
    ),
  };
}
const dependencies = { a: "1" };
const devDependencies = { b: "1" };
const build = { scripts: { build: "x" } };

test("npm: a lock file is obeyed, and development dependencies only come where something may use them", () => {
  assert.deepEqual(plan({ dependencies, devDependencies }, { "package-lock.json": "{}" }).commands, [
    "npm ci --omit=dev",
  ]);
  assert.deepEqual(plan({ dependencies, devDependencies, ...build }, { "package-lock.json": "{}" }).commands, [
    "npm ci --include=dev",
    "npm run build",
    "npm prune --omit=dev --ignore-scripts",
  ]);
  assert.deepEqual(plan({ dependencies }).commands, ["npm install --omit=dev"]);
});

test("an application in a workspace is installed at its root, and built with what it needs by the workspace's own means", () => {
  const commandsFor = (around: object, files: Record<string, string>, web: object = {}) => {
    const manifest = { name: "@x/web", devDependencies, ...build, ...web };
    const tree = testTree({
      "package.json": JSON.stringify(around),
      "apps/web/package.json": JSON.stringify(manifest),
      ...files,
    });
    const made = nodePlan(tree, { member: "apps/web" });
    return [...(made.install?.steps ?? []), ...made.build, ...made.prune].map(({ args }) => args.join(" "));
  };
  assert.deepEqual(commandsFor({}, { "pnpm-lock.yaml": "lockfileVersion: '9.0'" }), [
    "pnpm install --frozen-lockfile --prod=false --filter . --filter {./apps/web}...",
    "pnpm --filter {./apps/web}... run build",
    "pnpm install --prod --frozen-lockfile --offline --ignore-scripts --filter {./apps/web}...",
  ]);
  assert.deepEqual(commandsFor({}, { "yarn.lock": "__metadata:\n" }), [
    "yarn install --immutable",
    "yarn workspaces foreach -Rt --from @x/web run build",
    "yarn workspaces focus @x/web --production",
  ]);
  const npm = { "package-lock.json": "{}" };
  assert.equal(commandsFor({}, npm)[1], "sh -c cd apps/web && npm run build");
  const turbo = { ...npm, "turbo.json": "{}" };
  assert.equal(commandsFor({ devDependencies: { turbo: "2" } }, turbo)[1], "turbo run build --filter=./apps/web");
  const vitepress = { scripts: {}, devDependencies: { vitepress: "1" } };
  assert.equal(commandsFor({}, npm, vitepress)[1], "sh -c cd apps/web && npx --no vitepress build .");
});

test("what is no version is not taken for the package manager's", () => {
  const lock = { "yarn.lock": "# yarn lockfile v1" };
  assert.deepEqual(
    plan({ dependencies, packageManager: "yarn@4.1.0 or newer" }, lock).commands,
    plan({ dependencies }, lock).commands,
  );
});

test("a package manager that is asked for anywhere is used, or the log names what is not", () => {
  const chosen = (manifest: object, files: Record<string, string> = {}) => {
    const { name, version, notes } = choosePackageManager(parsePackageJson(JSON.stringify(manifest)), testTree(files));
    return [`${name} ${version}`, notes.join()];
  };
  const pnpm = (version: string) => ({ packageManager: { name: "pnpm", version } });
  assert.deepEqual(chosen({ packageManager: "pnpm@9" }), ["pnpm >=9.0.0 <10.0.0-0", ""]);
  assert.deepEqual(chosen({ devEngines: pnpm("9.1.0") }), ["pnpm 9.1.0", ""]);
  assert.deepEqual(chosen({ volta: { node: "22.1.0", yarn: "4.1.0" } }), ["yarn-modern 4.1.0", ""]);
  assert.match(
    chosen({ packageManager: "pnpm@latest" }, { "pnpm-lock.yaml": "" })[1] ?? "",
    /^packageManager .* cannot read/,
  );
  assert.match(chosen({}, { ".bun-version": "newest", "bun.lock": "" })[1] ?? "", /^\.bun-version .* cannot read/);
  const both = { packageManager: "pnpm@9.1.0", volta: { yarn: "1.22.0" } };
  assert.match(chosen(both)[1] ?? "", /yarn@1\.22\.0 \(volta\.yarn .* is not used: pnpm@9\.1\.0/);
});

test("pnpm and yarn are chosen by their lock files", () => {
  assert.deepEqual(
    plan({ dependencies, devDependencies, ...build }, { "pnpm-lock.yaml": "lockfileVersion: '9.0'" }).commands,
    ["pnpm install --frozen-lockfile --prod=false", "pnpm run build", "pnpm prune --prod --ignore-scripts"],
  );
  assert.deepEqual(plan({ dependencies }, { "yarn.lock": "# yarn lockfile v1" }).commands, [
    "yarn install --frozen-lockfile --production=true --non-interactive",
  ]);
  assert.deepEqual(plan({ dependencies, devDependencies, ...build }, { "yarn.lock": "__metadata:\n" }).commands, [
    "yarn install --immutable",
    "yarn run build",
    "yarn workspaces focus --production",
  ]);
});

test("packageManager decides over lock files, which are named when they are not used", () => {
  const manifest = parsePackageJson(JSON.stringify({ packageManager: "pnpm@9.1.0+sha512.abc" }));
  const chosen = choosePackageManager(manifest, testTree({ "package-lock.json": "{}", "pnpm-lock.yaml": "" }));
  assert.deepEqual(
    { ...chosen, notes: chosen.notes.length },
    { name: "pnpm", version: "9.1.0", lockFile: "pnpm-lock.yaml", notes: 1 },
  );
  const yarn = parsePackageJson(JSON.stringify({ packageManager: "yarn@1.22.0" }));
  const both = testTree({ "pnpm-lock.yaml": "", "yarn.lock": "" });
  assert.equal(choosePackageManager(yarn, both).lockFile, "yarn.lock");
});

test("the format of pnpm's lock file decides its version", () => {
  const version = (text: string) =>
    choosePackageManager(parsePackageJson("{}"), testTree({ "pnpm-lock.yaml": text })).version;
  assert.deepEqual(
    [version("lockfileVersion: 5.4"), version("lockfileVersion: '6.0'"), version("lockfileVersion: '9.0'")],
    ["7", "8", "10"],
  );
});

test("equal inputs give equal install keys; the lock file, the Node version and the settings change them", () => {
  const lock = { "package-lock.json": "{}" };
  const key = plan({ dependencies }, lock).key();
  assert.ok(key);
  assert.equal(
    plan({ dependencies, version: "2", scripts: { start: "y" } }, { ...lock, "server.js": "changed" }).key(),
    key,
  );
  assert.notEqual(plan({ dependencies }, { "package-lock.json": "{ }" }).key(), key);
  assert.notEqual(plan({ dependencies }, lock).key("node 22.0.0"), key);
  assert.notEqual(plan({ dependencies }, { ...lock, ".npmrc": "x=1" }).key(), key);
  assert.notEqual(plan({ dependencies, ...build }, lock).key(), key);
});

test("a lock file that lacks only what others need is completed; one that lacks what package.json names is refused", () => {
  const instead = plan({ dependencies }, { "package-lock.json": "{}" }).install?.steps[0]?.instead;
  const [name] = Object.keys(dependencies);
  assert.ok(instead);
  assert.ok(
    instead.fits("npm error Missing: @x/android-arm@ from lock file\nnpm error Missing: y@1.0.0 from lock file"),
  );
  assert.ok(
    !instead.fits(`npm error Missing: y@1.0.0 from lock file\nnpm error Missing: ${name}@1.0.0 from lock file`),
  );
  assert.ok(
    !instead.fits("npm error Missing: y@1 from lock file\nnpm error Invalid: lock file's z@1 does not satisfy z@2"),
  );
  assert.ok(!instead.fits("npm error code E404"));
  assert.deepEqual(instead.step.args.slice(0, 2), ["npm", "install"]);
  assert.ok(instead.step.args.includes("--no-save"));
  assert.equal(plan({ dependencies }).install?.steps[0]?.instead, undefined);
});

test("installs that depend on more than the lock file are not reused", () => {
  const lock = { "package-lock.json": "{}" };
  assert.equal(plan({ dependencies }).key(), null);
  assert.equal(plan({ dependencies, scripts: { postinstall: "patch-package" } }, lock).key(), null);
  assert.equal(plan({ dependencies, workspaces: ["a"] }, lock).key(), null);
  assert.equal(plan({ dependencies: { a: "file:../a" } }, lock).key(), null);
  assert.notEqual(plan({ dependencies, scripts: { prepare: "husky" } }, lock).key(), null);
});

test("the application's own install scripts run again over reused dependencies, git hooks apart", () => {
  const scripts = { preinstall: "only-allow npm", postinstall: "prisma generate", prepare: "husky" };
  const again = plan({ dependencies, scripts }, { "package-lock.json": "{}" }).install?.again ?? [];
  assert.deepEqual(
    again.map((step) => step.args.join(" ")),
    ["npm run postinstall"],
  );
});

test("an install is shared with no name, no script and no setting of its application", () => {
  const lock = { "package-lock.json": "{}" };
  const shared = (manifest: object, files: Record<string, string> = lock) => plan(manifest, files).install?.standalone;
  const found = shared({ name: "own", dependencies, scripts: { start: "x", prepare: "husky" } });
  assert.deepEqual(JSON.parse(found?.manifest ?? ""), { dependencies });
  assert.ok(found?.step.args.includes("--ignore-scripts"));
  for (const script of ["preinstall", "install", "postinstall", "prepare"])
    assert.equal(shared({ dependencies, scripts: { [script]: "husky && node own.js" } }), undefined, script);
  for (const file of [".npmrc", "binding.gyp", "npm-shrinkwrap.json"])
    assert.equal(shared({ dependencies }, { ...lock, [file]: "" }), undefined, file);
  for (const file of ["yarn.lock", "pnpm-lock.yaml", "bun.lock"])
    assert.equal(shared({ dependencies }, { [file]: "" }), undefined, file);
  assert.equal(shared({ dependencies: { a: "file:../a" } }), undefined);
});

test("SvelteKit's adapter that chooses by the environment is told to choose a server", () => {
  const auto = { devDependencies: { "@sveltejs/adapter-auto": "^7" }, ...build };
  assert.deepEqual(plan(auto).build[0]?.env, { GCP_BUILDPACKS: "1" });
  assert.deepEqual(plan(build).build[0]?.env, {});
});

test("nothing declared, nothing installed, and no remark on a missing lock file", () => {
  assert.equal(plan({}).install, null);
  assert.deepEqual(plan({}).notes, []);
  assert.match(plan({ dependencies }).notes.join(), /No lock file/);
});

test("Bun installs by its lock file and runs the source as it is; another lock file beside it wins", () => {
  const source = { "package.json": '{"dependencies":{"hono":"4"}}', "bun.lock": "", "src/index.ts": "" };
  const plan = nodePlan(testTree(source));
  const [install] = plan.install?.steps ?? [];
  assert.deepEqual(install?.args, [
    "bun",
    "install",
    "--backend=copyfile",
    "--no-progress",
    "--frozen-lockfile",
    "--production",
  ]);
  const files: BuiltFiles = {
    ...{ has: (path) => path in source, mayExist: () => true },
    ...{ folders: () => [], files: () => [], pages: () => 0 },
  };
  const start = plan.start(files);
  assert.equal(start.how === "command" && start.command, "bun run src/index.ts");
  const managers = (more: Record<string, string>) =>
    nodePlan(testTree({ ...source, ...more })).tools.flatMap((wish) =>
      wish.tool === "package-manager" ? [wish.manager] : [],
    );
  assert.equal(managers({})[0]?.version, "1");
  assert.equal(managers({ ".bun-version": "1.2.3" })[0]?.version, "1.2.3");
  assert.equal(managers({ "package-lock.json": "" })[0]?.name, "npm");
});

test("development dependencies stay where a command uses their programs, also by a script of package.json", () => {
  const scripts = { build: "next build", "db:push": "drizzle-kit push", migrate: "npm run db:push" };
  const manifest = { dependencies, devDependencies: { "drizzle-kit": "1", typescript: "5" }, scripts };
  const files = { "package.json": JSON.stringify(manifest), "package-lock.json": "{}" };
  const of = (command: string) => nodePlan(testTree(files), { commands: [command] });
  for (const command of [
    "npx drizzle-kit push",
    "npm run db:push",
    "pnpm migrate && echo",
    "node_modules/.bin/drizzle-kit",
  ]) {
    const { prune, notes } = of(command);
    assert.deepEqual(prune, [], command);
    assert.match(notes.join(), /stay in the image, because its commands use drizzle-kit/);
  }
  assert.equal(of("node migrate.js constructor").prune.length, 1);
  assert.notDeepEqual(of("npx drizzle-kit push").install?.inputs, of("node x.js").install?.inputs);
  // A start script, too; without it, nothing but production dependencies would be installed.
  const started = plan({ devDependencies: { "cross-env": "7" }, scripts: { start: "cross-env A=1 node x.js" } });
  assert.deepEqual(started.commands, ["npm install --include=dev"]);
  const prisma = plan({ devDependencies: { "@mikro-orm/cli": "6" }, scripts: { start: "mikro-orm up; node x.js" } });
  assert.deepEqual(prisma.commands, ["npm install --include=dev"]);
});

test("a static generator builds without a script named build, unless something else starts the application", () => {
  const built = (manifest: object, files = {}) =>
    plan({ devDependencies: { vitepress: "1" }, ...manifest }, files).commands;
  const scripts = { "docs:dev": "vitepress dev docs", "docs:build": "vitepress build docs" };
  assert.deepEqual(built({ scripts }), [
    "npm install --include=dev",
    "npm run docs:build",
    "npm prune --omit=dev --ignore-scripts",
  ]);
  assert.equal(built({}, { "docs/.vitepress/config.mjs": "" })[1], "vitepress build docs");
  assert.equal(built({}, { "index.md": "" })[1], "vitepress build .");
  assert.equal(built({ devDependencies: { "@11ty/eleventy": "3" } })[1], "eleventy");
  assert.equal(built({ scripts: { ...scripts, start: "node server.js" } }).length, 1);
});

test("a folder of a workspace is refused with the way to build the whole repository", () => {
  const declared = { "@acme/ui": "workspace:*" };
  const manifest = { name: "web", dependencies: declared };
  for (const each of [manifest, { name: "web", devDependencies: declared }])
    assert.throws(() => plan(each), {
      code: "dependency_not_found",
      message: /@acme\/ui is a package of the workspace/,
    });
  assert.doesNotThrow(() => plan(manifest, { "pnpm-workspace.yaml": "packages: [x]" }));
});
