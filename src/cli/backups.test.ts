import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, Refusal, startScriptedPlatform, type Script } from "../../test/support/scripted-platform.ts";
import type { Result } from "../contract/routes.ts";

const at = "2026-01-02T03:04:05.678Z";

function backup(more: Partial<Result<"backups.get">> = {}): Result<"backups.get"> {
  return {
    id: "bak_1",
    content: "database",
    status: "completed",
    origin: "manual",
    created_at: at,
    finished_at: at,
    size_bytes: 2048,
    sha256: "0".repeat(64),
    engine_version: "15.14",
    storage: "disk",
    verification: null,
    operation: null,
    failure: null,
    tables: [{ table: "public.users", rows: 3 }],
    ...more,
  };
}

/** A backup that two requests see unfinished. */
function creates(end: Result<"backups.get">): Script {
  let asked = 0;
  const operation = { kind: "backup", phase: "dumping", bytes_done: 1024, tables_done: 1, tables_total: 2 } as const;
  return {
    "backups.create": () => ({ id: "bak_1", status: "running" }),
    "backups.get": () => ((asked += 1) < 3 ? backup({ status: "running", finished_at: null, operation }) : end),
  };
}

async function run(script: Script, args: readonly string[]) {
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const ended = await user.berth([...args, "-p", "demo"]);
  return { ...ended, seen: platform.seen };
}

test("create follows the backup to its end and says how far it is", async () => {
  const { exitCode, stdout, stderr } = await run(creates(backup()), ["backups", "create"]);
  assert.equal(exitCode, 0, stderr);
  assert.match(stdout, /^Backed up: bak_1/);
  assert.match(stderr, /dumping.*1 of 2 tables/);
});

test("create ends with 1 and the reason when the backup fails", async () => {
  const failed = backup({ status: "failed", failure: { code: "storage_full", summary: "There is no room left." } });
  const { exitCode, stdout, stderr } = await run(creates(failed), ["backups", "create"]);
  assert.equal(exitCode, 1);
  assert.equal(stdout, "");
  assert.match(stderr, /no room left/);
});

test("create --no-wait --json prints what the API answered", async () => {
  const { stdout, seen } = await run(creates(backup()), ["backups", "create", "--no-wait", "--json"]);
  assert.deepEqual(JSON.parse(stdout), { id: "bak_1", status: "running" });
  assert.deepEqual(
    seen.map(({ name }) => name),
    ["backups.create"],
  );
});

test("verify takes the newest completed backup and names the tables that differ", async () => {
  const tables = [{ table: "public.users", expected: 3, actual: 2 }];
  const script: Script = {
    "backups.list": () => ({
      backups: [backup({ id: "bak_3", status: "failed" }), backup({ id: "bak_2" }), backup()],
      next_cursor: null,
    }),
    "backups.get": () => backup({ id: "bak_2" }),
    "backups.verify": ({ params }) => ({
      status: params["id"] === "bak_2" ? "mismatch" : "verified",
      tables,
      reason: null,
    }),
  };
  const { exitCode, stderr } = await run(script, ["backups", "verify"]);
  assert.equal(exitCode, 1);
  assert.match(stderr, /bak_2.*public\.users: 2 rows instead of 3/);
  const json = await run(script, ["backups", "verify", "--json"]);
  assert.equal(json.exitCode, 1);
  assert.deepEqual(JSON.parse(json.stdout), { status: "mismatch", tables, reason: null });
});

test("verify of a large database goes on watching when the answer takes too long", async () => {
  let asked = 0;
  const tables = [{ table: "public.users", expected: 3, actual: 3 }];
  const verification = { status: "verified", verified_at: at, tables, reason: null } as const;
  const operation = { kind: "verify", phase: "restoring", bytes_done: 1, tables_done: 0, tables_total: null } as const;
  const script: Script = {
    "backups.verify": () => new Refusal("unavailable"),
    "backups.get": () => {
      asked += 1;
      return asked < 3 ? backup({ operation: asked === 1 ? null : operation }) : backup({ verification });
    },
  };
  const { exitCode, stdout, stderr } = await run(script, ["backups", "verify", "bak_1"]);
  assert.equal(exitCode, 0, stderr);
  assert.match(stdout, /^Verified: 1 table of bak_1/);
});

test("restore says where, and how to go on", async () => {
  const script: Script = {
    "backups.restore": () => ({ database: "restored_1", folder: null, backup_id: "bak_1", shows: null }),
  };
  const { stdout, stderr, seen } = await run(script, ["backups", "restore", "bak_1"]);
  assert.match(stdout, /^Restored: bak_1 into the database restored_1/);
  assert.match(stderr, /berth backups promote restored_1/);
  assert.deepEqual(seen[0]?.body, { backup_id: "bak_1" });
});

test("promote and drop ask first", async () => {
  const script: Script = {
    "backups.promote": () => ({ database: "restored_1", previous: "d1" }),
    "backups.drop": () => undefined,
  };
  for (const verb of ["promote", "drop"]) {
    assert.equal((await run(script, ["backups", verb, "restored_1"])).exitCode, 2);
    const { exitCode, seen } = await run(script, ["backups", verb, "restored_1", "--yes"]);
    assert.equal(exitCode, 0);
    assert.equal(seen.length, 1);
  }
});

test("list and show are readable", async () => {
  const script: Script = {
    "backups.list": () => ({ backups: [backup()], next_cursor: null }),
    "backups.get": () => backup(),
  };
  assert.match((await run(script, ["backups"])).stdout, /bak_1 +completed +database +manual/);
  assert.match((await run(script, ["backups", "show", "bak_1"])).stdout, /public\.users +3/);
});
