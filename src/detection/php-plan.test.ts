import assert from "node:assert/strict";
import { test } from "node:test";
import { phpPlan } from "./php-plan.ts";
import { startCommand, testTree } from "../../test/support/source-tree.ts";

const plan = (source: Record<string, string>, hasComposer = true) => phpPlan(testTree(source), "8.2.7", hasComposer);
const command = (source: Record<string, string>) => startCommand(plan(source));
const needing = (require: object) => ({ "composer.json": JSON.stringify({ require }), "public/index.php": "" });

test("PHP's own server serves public/, web/ or the root, with several workers", () => {
  assert.equal(command({ "public/index.php": "", "index.php": "" }), "php -S 0.0.0.0:$PORT -t public");
  assert.equal(command({ "index.php": "" }), "php -S 0.0.0.0:$PORT -t .");
  assert.equal(plan({ "index.php": "" }).env["PHP_CLI_SERVER_WORKERS"], "4");
  assert.throws(() => command({ "composer.json": "{}" }), { code: "no_start_command" });
});

test("packages come from vendor/ of the repository, else by Composer, the machine's or the repository's own", () => {
  const source = needing({ "slim/slim": "^4" });
  const install = (changed: Record<string, string> = {}, hasComposer = true) =>
    plan({ ...source, ...changed }, hasComposer).install?.steps[0]?.args.slice(0, 2);
  assert.deepEqual(install(), ["composer", "install"]);
  assert.deepEqual(install({ "composer.phar": "" }, false), ["php", "composer.phar"]);
  assert.equal(install({ "vendor/autoload.php": "" }, false), undefined);
  assert.throws(() => install({}, false), { code: "build_tool_missing" });
  const own = JSON.stringify({ autoload: { "psr-4": { "App\\": "src/" } } });
  assert.equal(plan({ "index.php": "", "composer.json": own }).install?.steps.length, 1);
  assert.equal(plan(needing({ php: "^8.1", "ext-json": "*" }), false).install, null);
});

test("the version of composer.json is compared with the machine's", () => {
  for (const wish of ["^8.1", ">=8.0 <9", "^7.4|^8.0", "^7.4 || ^8.0", "not a version"]) plan(needing({ php: wish }));
  assert.throws(() => plan(needing({ php: "^7.4" })), { code: "php_version_unavailable" });
  assert.throws(() => plan({ "composer.json": "{" }), { code: "manifest_invalid" });
});
