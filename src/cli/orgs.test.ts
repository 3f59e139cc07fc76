import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";
import type { Result } from "../contract/routes.ts";

const at = "2026-01-02T03:04:05.678Z";
const org: Result<"orgs.enable"> = {
  id: "org_1",
  slug: "acme",
  name: "Acme",
  state: "active",
  max_projects: 10,
  projects: 3,
  created_at: at,
  suspended_at: null,
};

test("making an organization prints its owner token alone on stdout", async () => {
  await using platform = await startScriptedPlatform({ "orgs.create": () => ({ ...org, owner_token: goodToken }) });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { exitCode, stdout } = await user.berth(["orgs", "create", "acme", "--max-projects", "50"]);
  assert.deepEqual([exitCode, stdout], [0, `${goodToken}\n`]);
  assert.deepEqual(platform.seen[0]?.body, { slug: "acme", name: "acme", max_projects: 50 });
});

test("suspending asks first, and needs --yes where nobody can be asked", async () => {
  const suspended = { ...org, state: "suspended", suspended_at: at } as const;
  await using platform = await startScriptedPlatform({
    "orgs.disable": () => suspended,
    "orgs.enable": () => org,
    "orgs.list": () => ({ orgs: [suspended] }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  assert.equal((await user.berth(["orgs", "disable", "acme"])).exitCode, 2);
  assert.equal(platform.seen.length, 0);
  assert.match((await user.berth(["orgs", "disable", "acme", "--yes"])).stdout, /acme is suspended/);
  assert.match((await user.berth(["orgs"])).stdout, /acme +Acme +suspended +3 of 10/);
  assert.match((await user.berth(["orgs", "enable", "acme"])).stdout, /acme is active/);
});

test("a project's move is followed to its end, and a failed one says why and that the project serves as before", async () => {
  const move = { to: "docker", build_id: "bld_1", requested_at: at, status: "done" as const, failure: null };
  const shown: Result<"platform.runtime"> = { runtime: "docker", available: ["process", "docker"], move };
  const failure = {
    stage: "health" as const,
    code: "wrong_port",
    summary: "Nothing answered.",
    hint: "Listen.",
    log_tail: [],
  };
  const failed: Result<"platform.runtime"> = {
    ...shown,
    runtime: "process",
    move: { ...move, status: "failed" as const, failure },
  };
  let found = shown;
  await using platform = await startScriptedPlatform({
    "platform.move": () => ({ ...shown, move: { ...move, status: "building" } }),
    "platform.runtime": () => found,
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  assert.match(
    (await user.berth(["platform", "runtime", "acme/shop", "docker"])).stdout,
    /runtime +docker\n.*process, docker/,
  );
  assert.deepEqual(platform.seen[0]?.body, { runtime: "docker" });
  found = failed;
  const { exitCode, stderr } = await user.berth(["platform", "runtime", "acme/shop", "docker"]);
  assert.equal(exitCode, 7);
  assert.match(stderr, /not moved to docker and serves as before\. Nothing answered/);
  assert.equal((await user.berth(["platform", "runtime", "shop"])).exitCode, 2);
});

test("machines of a swarm are listed with what they do, and drained by name", async () => {
  const machine: Result<"platform.machines">["machines"][number] = {
    ...{ id: "abc123", name: "node-2", address: "192.0.2.2", role: "worker", state: "ready", takes_replicas: true },
    ...{ guarded: true, replicas: 3, cpus: 2, memory_bytes: 4e9, version: "20.10.24" },
  };
  const detail = { state: "down", replicas: 1, projects: ["acme/shop"] };
  const wouldRemove = {
    dry_run: true as const,
    ...{ route: "platform.dismiss", would_answer: 204, needs_approval: false, affects: null },
    would_change: { action: "org.machine_removed", target: "node-3", detail },
  };
  const drained = { ...machine, id: "def456", name: "node-3", takes_replicas: false, replicas: 0 };
  await using platform = await startScriptedPlatform({
    "platform.machines": () => ({ machines: [machine, drained] }),
    "platform.drain": () => ({ moving: 2 }),
    "platform.join": () => ({ script: "docker swarm join\n" }),
    "platform.dismiss": ({ query }) => (query.has("dry_run") ? wouldRemove : undefined),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { stdout } = await user.berth(["machines"]);
  assert.match(stdout, /node-2 +192\.0\.2\.2 +worker +ready +3 .*\n.*node-3 .* drained +0/);
  const { stdout: said } = await user.berth(["machines", "drain", "node-2"]);
  assert.match(said, /node-2 is drained\. Restarting on other machines: 2 projects\./);
  assert.deepEqual(platform.seen.at(-1)?.body, { takes_replicas: false });
  assert.equal((await user.berth(["machines", "drain", "node-9"])).exitCode, 4);
  assert.equal((await user.berth(["machines", "join"])).stdout, "docker swarm join\n");
  const asked = await user.berth(["machines", "remove", "node-3"]);
  assert.equal(asked.exitCode, 2);
  assert.match(asked.stderr, /removes node-3 .*start on other machines: acme\/shop\./);
  assert.equal((await user.berth(["machines", "remove", "node-3", "--yes"])).exitCode, 0);
});
