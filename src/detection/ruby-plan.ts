import semver from "semver";
import { askedVersions, versionNotes } from "./asked-versions.ts";
import { BuildRefused } from "./failures.ts";
import type { BuildPlan, Install, Start, Step } from "./plan.ts";
import type { SourceTree } from "./source-tree.ts";

export function rubyPlan(tree: SourceTree, version: string): BuildPlan {
  checkVersion(tree, version);
  return {
    kind: "ruby",
    name: isRails(tree) ? "Rails app" : isJekyll(tree) ? "Jekyll site" : "Ruby app",
    notes: [`Ruby ${version}`, ...notesOn(tree), ...versionNotes(askedVersions(tree, "ruby"), "Ruby", version)],
    tools: [],
    install: tree.has("Gemfile") ? installOf(tree, version) : null,
    build: isJekyll(tree)
      ? [bundled(["jekyll", "build", "--destination", site], { JEKYLL_ENV: "production" }, tree)]
      : assets(tree),
    prune: [],
    env: { ...gemEnv(tree), ...rubyEnv },
    start: () => startOf(tree),
  };
}

/** Returns whether this is a Ruby application. A Gemfile beside package.json does not suffice: it may only be for tools. */
export function isRuby(tree: SourceTree): boolean {
  return tree.has("config.ru") || isRails(tree) || (tree.has("Gemfile") && !tree.has("package.json"));
}

const rubyEnv = {
  ...{ RACK_ENV: "production", RAILS_ENV: "production" },
  ...{ RAILS_LOG_TO_STDOUT: "1", RAILS_SERVE_STATIC_FILES: "1" },
};

const isRails = (tree: SourceTree): boolean => tree.has("config/application.rb");

// github-pages is GitHub's set of Jekyll and its plugins.
const isJekyll = (tree: SourceTree): boolean =>
  /^[ \t]*gem[ (]*["'](?:jekyll|github-pages)["']/m.test(tree.text("Gemfile") ?? "") &&
  !isRails(tree) &&
  !tree.has("config.ru");
const site = "_site";
const isVendored = (tree: SourceTree): boolean => tree.paths.some((path) => path.startsWith("vendor/bundle/"));

function notesOn(tree: SourceTree): string[] {
  if (!tree.has("Gemfile")) return ["No Gemfile: the machine's gems are used"];
  if (isVendored(tree)) return ["The gems of vendor/bundle are used"];
  return tree.has("Gemfile.lock") ? [] : ["No Gemfile.lock: versions may change from build to build. Commit one."];
}

function checkVersion(tree: SourceTree, version: string): void {
  const [, inGemfile] = /^[ \t]*ruby[ (]*["'](?:~>[ \t]*)?(\d+\.\d+)/m.exec(tree.text("Gemfile") ?? "") ?? [];
  const [, inFile] = /^(?:ruby-)?(\d+\.\d+)/.exec(tree.text(".ruby-version") ?? "") ?? [];
  const wish = inGemfile ?? inFile;
  if (wish === undefined || semver.satisfies(semver.coerce(version)?.version ?? "", `~${wish}`)) return;
  const summary = `${inGemfile === undefined ? ".ruby-version" : "The Gemfile"} requires Ruby ${wish}; this machine has ${version}.`;
  throw new BuildRefused("ruby_version_unavailable", { summary });
}

// GEM_HOME adds to the machine's gems, which are used if they fit; a BUNDLE_PATH would hide them.
const folder = ".gems";

function gemEnv(tree: SourceTree): Readonly<Record<string, string>> {
  return {
    ...(isVendored(tree) ? { BUNDLE_PATH: "/app/vendor/bundle" } : { GEM_HOME: `/app/${folder}` }),
    BUNDLE_WITHOUT: "development:test",
  };
}

function installOf(tree: SourceTree, version: string): Install {
  const digest = tree.lock("Gemfile.lock")?.digest;
  const args = ["bundle", "install", ...(isVendored(tree) ? ["--local"] : [])] as const;
  const gemfile = tree.text("Gemfile") ?? "";
  const isReusable = digest !== undefined && !isVendored(tree) && !/\b(?:path|git|github)\b[ \t]*[:=]/.test(gemfile);
  const step: Step = {
    title: `Installing dependencies: ${args.join(" ")}`,
    stage: "install",
    args: [...args],
    env: {
      ...gemEnv(tree),
      ...{ BUNDLE_APP_CONFIG: "/tmp/bundle", BUNDLE_USER_CACHE: "/cache/bundle", BUNDLE_RETRY: "1" },
      ...(tree.has("Gemfile.lock") ? { BUNDLE_FROZEN: "true" } : {}),
    },
    tool: "bundler",
    otherwise: "install_failed",
  };
  const inputs = isReusable ? [version, digest, gemfile] : null;
  return { folder, inputs, steps: [step], npmLockFile: null, again: [] };
}

function assets(tree: SourceTree): Step[] {
  if (!isRails(tree) || !tree.paths.some((path) => path.startsWith("app/assets/"))) return [];
  return [bundled(["rake", "assets:precompile"], { SECRET_KEY_BASE_DUMMY: "1" }, tree)];
}

function bundled(command: readonly string[], env: Readonly<Record<string, string>>, tree: SourceTree): Step {
  const args = ["bundle", "exec", ...command] as const;
  return {
    ...{ title: `Building: ${args.join(" ")}`, stage: "build", args: [...args] },
    env: { ...gemEnv(tree), ...rubyEnv, ...env },
    ...{ tool: "script", otherwise: "build_script_failed" },
  };
}

/** Returns the start command. puma serves requests concurrently; rackup uses whatever server is installed. */
function startOf(tree: SourceTree): Start {
  const gems = `${tree.text("Gemfile") ?? ""}`;
  const run = tree.has("Gemfile") ? "bundle exec " : "";
  const command = (text: string, because: string): Start => ({ how: "command", command: `${run}${text}`, because });
  if (isJekyll(tree)) return { how: "static", folder: site, fallback: "none", because: "the Gemfile's jekyll" };
  if (isRails(tree)) return command("rails server --binding 0.0.0.0 --port $PORT", "config/application.rb");
  const hasPuma = /^[ \t]*gem[ (]*["']puma["']/m.test(gems);
  if (tree.has("config.ru"))
    return hasPuma
      ? command("puma --bind tcp://0.0.0.0:$PORT", "config.ru and puma")
      : command("rackup --host 0.0.0.0 --port $PORT", "config.ru (add puma to serve visitors)");
  const script = ["app.rb", "main.rb", "server.rb"].find((path) => tree.has(path));
  if (script === undefined) throw new BuildRefused("no_start_command");
  const options = /["']sinatra["']/.test(gems) ? " -o 0.0.0.0 -p $PORT" : "";
  return command(`ruby ${script}${options}`, script);
}
