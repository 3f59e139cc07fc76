import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";

const column = { type: "text", nullable: true, default: null, generated: null, identity: null, primary_key: false };
const page = {
  ...{ schema: "public", name: "users", kind: "table" as const, primary_key: ["id"], keys: [["id"]] },
  columns: [
    { ...column, name: "id", type: "bigint", primary_key: true },
    { ...column, name: "bio" },
    { ...column, name: "tags", type: "jsonb" },
  ],
  rows: [
    { id: "1", bio: "two\nlines \u001b[31mred\u001b[0m", tags: { a: 1 } },
    { id: "2", bio: null, tags: null },
  ],
  ...{ versions: ["7", "7"], cut: [], total: 10_000_000, estimated: true, next_offset: 2 },
};
const platform = () =>
  startScriptedPlatform({
    "data.tables": () => ({
      tables: [{ schema: "public", name: "users", kind: "materialized_view", estimated_rows: 1234, size_bytes: 8192 }],
      total: 1,
      next_offset: null,
    }),
    "data.rows": () => page,
    "data.insert": () => ({ row: { id: "3", bio: "x" }, cut: [] }),
    "data.update": () => ({ row: { id: "3", bio: "y" }, cut: [] }),
    "data.delete": () => undefined,
  });

test("tables are shown with kind, rows and size", async () => {
  await using api = await platform();
  await using user = await cliUser({ url: api.url, token: goodToken });
  const { stdout } = await user.berth(["data", "-p", "demo"]);
  assert.match(stdout, /public\.users +materialized view +~ 1,234 +8\.0 KiB/);
  await user.berth(["data", "tables", "-p", "demo", "--sort", "size_bytes", "--dir", "desc", "-n", "5", "-q", "us"]);
  assert.deepEqual(Object.fromEntries(api.seen[1]?.query ?? []), {
    sort: "size_bytes",
    dir: "desc",
    limit: "5",
    q: "us",
  });
});

test("rows are shown on one line each, without control sequences", async () => {
  await using api = await platform();
  await using user = await cliUser({ url: api.url, token: goodToken });
  const { stdout, stderr } = await user.berth(["data", "show", "users", "-p", "demo"]);
  assert.match(stdout, /^id\* +bio +tags/);
  assert.match(stdout, /\n1 +two lines red +\{"a":1\}\n2 +null +null/);
  assert.match(stderr, /About 10,000,000 rows\. Continue with --offset 2\./);
});

test("a row is changed by its key, after a question", async () => {
  await using api = await platform();
  await using user = await cliUser({ url: api.url, token: goodToken });
  const args = ["data", "update", "users", "-p", "demo", "bio=y", "--key", '{"id":"3"}'];
  assert.notEqual((await user.berth(args)).exitCode, 0);
  const { stdout } = await user.berth([...args, "--yes"]);
  assert.match(stdout, /bio +y/);
  assert.deepEqual(api.seen.at(-1)?.body, { key: { id: "3" }, values: { bio: "y" } });
});

test("a table is named as in SQL", async () => {
  await using api = await platform();
  await using user = await cliUser({ url: api.url, token: goodToken });
  const names: Record<string, [string, string]> = {
    users: ["public", "users"],
    "app.users": ["app", "users"],
    '"odd schema"."a.b"': ["odd schema", "a.b"],
    'app."say ""hi"""': ["app", 'say "hi"'],
  };
  for (const [given, [schema, table]] of Object.entries(names)) {
    await user.berth(["data", "show", given, "-p", "demo"]);
    const { params } = api.seen.at(-1) ?? {};
    assert.deepEqual([params?.["schema"], params?.["table"]], [schema, table]);
  }
  for (const wrong of ["a.b.c", 'a"b', ".", "", '"a'])
    assert.equal((await user.berth(["data", "show", wrong, "-p", "demo"])).exitCode, 2, wrong);
});

test("rows are added from pairs or JSON, and deleted by a key", async () => {
  await using api = await platform();
  await using user = await cliUser({ url: api.url, token: goodToken });
  await user.berth(["data", "insert", "users", "bio=a=b", "id=3", "-p", "demo"]);
  await user.berth(["data", "insert", "users", "--values", "-", "-p", "demo"], { stdin: '{"bio":null}' });
  await user.berth(["data", "delete", "users", "id=3", "-p", "demo", "--yes"]);
  assert.deepEqual(
    api.seen.map(({ body }) => body),
    [{ values: { bio: "a=b", id: "3" } }, { values: { bio: null } }, { key: { id: "3" } }],
  );
  for (const wrong of [
    ["insert", "users", "bio"],
    ["insert", "users", "--values", "{"],
    ["delete", "users", "id=1"],
  ])
    assert.notEqual((await user.berth(["data", ...wrong, "-p", "demo"])).exitCode, 0, wrong.join(" "));
  assert.equal(api.seen.length, 3);
});
