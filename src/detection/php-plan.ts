import semver from "semver";
import { askedVersions, versionNotes } from "./asked-versions.ts";
import { BuildRefused } from "./failures.ts";
import type { BuildPlan, Install, Start, Step } from "./plan.ts";
import type { SourceTree } from "./source-tree.ts";

/** Returns the plan to install and start a PHP application. `hasComposer`: Composer is installed on the machine. */
export function phpPlan(tree: SourceTree, version: string, hasComposer: boolean): BuildPlan {
  const manifest = readManifest(tree);
  checkVersion(manifest, version);
  const packages = Object.keys(manifest.require).filter((name) => name.includes("/"));
  const isVendored = tree.has("vendor/autoload.php");
  const needsInstall = !isVendored && (packages.length > 0 || manifest.autoloads || tree.has("composer.lock"));
  return {
    kind: "php",
    name: "PHP app",
    notes: [
      `PHP ${version}`,
      ...versionNotes(askedVersions(tree, "php"), "PHP", version),
      ...(isVendored ? ["The packages of vendor/ are used"] : []),
    ],
    tools: [],
    install: needsInstall ? installOf(tree, hasComposer) : null,
    build: [],
    prune: [],
    // Number of forked workers, so that a slow request does not block others.
    env: { PHP_CLI_SERVER_WORKERS: "4" },
    start: () => startOf(tree),
  };
}

const roots = ["public", "web", "."];

export function isPhp(tree: SourceTree): boolean {
  const serves = roots.some((root) => tree.has(root === "." ? "index.php" : `${root}/index.php`));
  return serves || (tree.has("composer.json") && !tree.has("package.json"));
}

type ComposerManifest = ReturnType<typeof readManifest>;

function readManifest(tree: SourceTree) {
  try {
    const value = JSON.parse(tree.text("composer.json") ?? "{}") as {
      require?: Record<string, unknown>;
      autoload?: unknown;
    } | null;
    const require = value?.require;
    return {
      require: typeof require === "object" && require !== null ? require : {},
      /** Whether the manifest declares autoloading, so that Composer must write vendor/autoload.php even without packages. */
      autoloads: value?.autoload !== undefined,
    };
  } catch (error) {
    const summary = `composer.json is not valid JSON: ${(error as Error).message}`;
    throw new BuildRefused("manifest_invalid", { summary });
  }
}

// Parsing a range takes quadratic time.
const longestWish = 256;

/** A range that semver can't parse is left to Composer. */
function checkVersion({ require }: ComposerManifest, version: string): void {
  const wish = require["php"];
  if (typeof wish !== "string" || wish.length > longestWish) return;
  const range = semver.validRange(wish.replaceAll(",", " ").replace(/(?<!\|)\|(?!\|)/g, "||"));
  const own = semver.coerce(version);
  if (range === null || own === null || semver.satisfies(own, range)) return;
  const summary = `composer.json asks for PHP ${wish}; this machine has ${version}.`;
  throw new BuildRefused("php_version_unavailable", { summary });
}

function installOf(tree: SourceTree, hasComposer: boolean): Install {
  const isOwn = tree.has("composer.phar");
  if (!isOwn && !hasComposer) {
    throw new BuildRefused("build_tool_missing", {
      summary: "composer.json names packages, vendor/ is not in the repository, and this machine has no Composer.",
      hint: "Commit vendor/ or composer.phar, or ask the operator for `apt-get install composer`.",
    });
  }
  const flags = ["--no-dev", "--no-interaction", "--no-progress", "--prefer-dist", "--optimize-autoloader"];
  const args = [...(isOwn ? ["php", "composer.phar"] : ["composer"]), "install", ...flags];
  const step: Step = {
    title: "Installing dependencies: composer install --no-dev",
    stage: "install",
    args: args as [string, ...string[]],
    env: { COMPOSER_HOME: "/tmp/composer", COMPOSER_CACHE_DIR: "/cache/composer" },
    tool: "composer",
    otherwise: "install_failed",
  };
  // No reuse: the autoloader lists the application's own classes.
  return { folder: "vendor", inputs: null, steps: [step], npmLockFile: null, again: [] };
}

/** Starts PHP's built-in server. php-fpm would need a web server in every replica, whose jobs the edge does. A Procfile can name another. */
function startOf(tree: SourceTree): Start {
  const root = roots.find((each) => tree.has(each === "." ? "index.php" : `${each}/index.php`));
  if (root === undefined) throw new BuildRefused("no_start_command");
  const because = root === "." ? "index.php" : `${root}/index.php`;
  return { how: "command", command: `php -S 0.0.0.0:$PORT -t ${root}`, because };
}
