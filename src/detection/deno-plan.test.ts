import assert from "node:assert/strict";
import { test } from "node:test";
import { denoPlan, isDeno } from "./deno-plan.ts";
import { startCommand, testTree } from "../../test/support/source-tree.ts";

const commandOf = (source: Record<string, string>) => startCommand(denoPlan(testTree(source)));

test("the version of .deno-version is fetched, and one that cannot be read is named", () => {
  const planned = (version: string) =>
    denoPlan(testTree({ "deno.json": "{}", "main.ts": "", ".deno-version": version }));
  assert.deepEqual(planned("# ours\nv2.1.4\n").tools, [{ tool: "deno", wish: "2.1.4", inRelease: true }]);
  assert.match(planned("newest").notes.join(), /\.deno-version says "newest", which Berth cannot read: Deno 2 is used/);
});

test("a package for Node.js with a deno.json beside it is no Deno application", () => {
  const is = (...paths: string[]) => isDeno(testTree(Object.fromEntries(paths.map((path) => [path, ""]))));
  assert.deepEqual([is("deno.json"), is("deno.jsonc"), is("deno.lock")], [true, true, true]);
  assert.ok(is("deno.json", "deno.lock", "package.json"));
  assert.ok(!is("deno.json", "package.json"));
  assert.ok(!is("deno.lock", "deno.json", "package.json", "package-lock.json"));
});

test("the start task runs it, with an address that Deno.serve takes; else the module of a usual name", () => {
  const task = `{\n  // why\n  "tasks": { "start": "deno run -A main.ts", }, /* "tasks": 1 */ "a": "//"\n}`;
  assert.equal(
    commandOf({ "deno.jsonc": task, "main.ts": "" }),
    "DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT deno task start",
  );
  assert.match(commandOf({ "deno.json": "{}", "main.ts": "Deno.serve(f);" }), /\$PORT deno run --allow-all main\.ts$/);
  assert.match(
    commandOf({ "deno.json": "{}", "src/server.ts": "export default { fetch }" }),
    /^deno serve .* src\/server\.ts$/,
  );
  assert.throws(() => commandOf({ "deno.json": "{}" }), { code: "no_start_command" });
  assert.throws(() => commandOf({ "deno.json": "{" }), { code: "manifest_invalid" });
});

test("what was downloaded is kept by the lock file, and none without one", () => {
  const inputs = (source: Record<string, string>) =>
    denoPlan(testTree({ "main.ts": "", ...source })).install?.inputs ?? null;
  const locked = { "deno.json": "{}", "deno.lock": "{}" };
  assert.deepEqual(inputs(locked), inputs({ ...locked, "main.ts": "changed" }));
  assert.notDeepEqual(inputs(locked), inputs({ ...locked, "deno.lock": "{ }" }));
  assert.notDeepEqual(inputs(locked), inputs({ ...locked, "deno.json": "{ }" }));
  assert.equal(inputs({ "deno.json": "{}" }), null);
  assert.equal(inputs({ ...locked, "package.json": "{}" }), null);
  assert.ok(denoPlan(testTree(locked)).install?.steps[0]?.args.includes("--frozen"));
});

test("the version is the one that is written, else the newest of 2", () => {
  const wish = (source: Record<string, string>) =>
    denoPlan(testTree({ "deno.json": "{}", ...source })).tools.flatMap((tool) =>
      tool.tool === "deno" ? [tool.wish] : [],
    );
  assert.deepEqual(wish({}), ["2"]);
  assert.deepEqual(wish({ ".deno-version": "v2.1.4\n" }), ["2.1.4"]);
});
