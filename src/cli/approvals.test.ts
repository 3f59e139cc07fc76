import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, Refusal, startScriptedPlatform } from "../../test/support/scripted-platform.ts";
import type { Result } from "../contract/routes.ts";

const at = "2026-01-02T03:04:05.678Z";
const login = (url: string) => ({ url, token: goodToken });

function sample(status: Result<"approvals.get">["status"]): Result<"approvals.get"> {
  const request = {
    route: "projects.delete",
    method: "DELETE",
    path: "/v1/projects/demo",
    summary: "Delete the project demo",
    project: "demo",
    target: "demo",
  };
  const requested_by = { token_id: "tok_1", token_name: "agent" };
  return {
    id: "apr_1",
    status,
    ...request,
    requested_by,
    created_at: at,
    expires_at: at,
    decided_at: null,
    consumed_at: null,
    review: null,
  };
}

test("a command that needs an approval has an exit code of its own and says how to go on", async () => {
  const approval = { id: "apr_1", status: "pending", expires_at: at };
  const next = { route: "approvals.get", method: "GET", path: "/v1/approvals/apr_1?wait=60" };
  await using platform = await startScriptedPlatform({
    "projects.delete": () => new Refusal("approval_required", { approval, next }),
  });
  await using user = await cliUser(login(platform.url));
  const remove = ["projects", "delete", "demo", "--yes"];
  const { exitCode, stderr } = await user.berth(remove);
  assert.equal(exitCode, 8);
  assert.match(stderr, /berth approvals wait apr_1/);
  const told = JSON.parse((await user.berth([...remove, "--json"])).stderr) as Record<string, unknown>;
  assert.deepEqual([told["code"], told["approval"], told["next"]], ["approval_required", approval, next]);
});

test("waiting ends with the decision: 0 when approved, 1 when not", async () => {
  for (const [decision, expected] of [
    ["approved", 0],
    ["denied", 1],
    ["expired", 1],
  ] as const) {
    let asked = 0;
    await using platform = await startScriptedPlatform({
      "approvals.get": () => sample((asked += 1) < 3 ? "pending" : decision),
    });
    await using user = await cliUser(login(platform.url));
    const { exitCode, stdout } = await user.berth(["approvals", "wait", "apr_1", "--json"]);
    assert.equal(exitCode, expected);
    assert.equal((JSON.parse(stdout) as { status: string }).status, decision);
    assert.equal(platform.seen[0]?.query.get("wait"), "20");
  }
});

test("the list shows who asks for what", async () => {
  await using platform = await startScriptedPlatform({
    "approvals.list": () => ({ approvals: [sample("pending")], next_cursor: null }),
  });
  await using user = await cliUser(login(platform.url));
  const { stdout } = await user.berth(["approvals", "--status", "pending"]);
  for (const part of ["apr_1", "pending", "Delete the project demo", "agent"]) assert.ok(stdout.includes(part), part);
  assert.equal(platform.seen[0]?.query.get("status"), "pending");
});

test("a request to deploy shows what would change, and what its rehearsal did", async () => {
  const [live, commit] = ["a".repeat(40), "b".repeat(40)];
  const lines = "@@ -1 +1 @@\n-one\n+two\n";
  const file = {
    path: "server.js",
    status: "changed",
    added: 1,
    removed: 1,
    binary: false,
    lines,
    cut: false,
  } as const;
  const review = {
    ...{ live: { number: 3, commit: live }, commit, url: "https://fix--shop.apps.example" },
    ...{ counts: { added: 1, removed: 0 }, files: [file], complete: false },
    commits: [{ side: "added", commit, author: "agent", message: "Fix", at } as const],
    rehearsal: { state: "passed" as const, deployment: 7, reason: null, lines: ["orders: 2 rows more"] },
  };
  await using platform = await startScriptedPlatform({ "approvals.get": () => ({ ...sample("pending"), review }) });
  await using user = await cliUser(login(platform.url));
  const { stdout } = await user.berth(["approvals", "show", "apr_1"]);
  const parts = ["deployment 3, aaaaaaaa", "bbbbbbbb (1 new commit)", review.url, "passed (deployment 7)", "+two"];
  for (const part of [...parts, "orders: 2 rows more", "changed server.js", "More differs"])
    assert.ok(stdout.includes(part), `${part}: ${stdout}`);
});
