import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { until } from "../kit/until.ts";
import { sampleBuild, sampleDeployment, sampleFailure } from "../../test/support/contract-samples.ts";
import { goodToken, Refusal, startScriptedPlatform, type Script } from "../../test/support/scripted-platform.ts";
import { guardMs } from "../../test/support/eventually.ts";

const log = ["-----> Installing\n", "-----> \x1b[2JBuilding ✓\n"];
const shownLog = log.join("").replace("\x1b[2J", "");

/** A platform whose build log comes in two parts; between them the platform is unreachable. */
function deploys(build = sampleBuild(), deployment = sampleDeployment()): Script {
  let reads = 0;
  return {
    "deployments.create": () => ({ build_id: build.id, commit: build.commit }),
    "builds.get": () => build,
    "deployments.list": () => ({
      deployments: [sampleDeployment({ id: "dep_9", trigger: "rollback", build_id: build.id }), deployment],
      next_cursor: null,
    }),
    "builds.logs": ({ query }) => {
      reads += 1;
      if (reads === 2) return new Refusal("unavailable");
      const offset = Number(query.get("offset"));
      const text = offset === 0 ? log[0] : log[1];
      return {
        build_id: build.id,
        status: build.status,
        log: text as string,
        times: [],
        next_offset: offset + Buffer.byteLength(text as string),
        complete: offset > 0,
      };
    },
  };
}

test("deploy follows the build's log, with control sequences only on request, and ends when the deployment is live", async () => {
  await using platform = await startScriptedPlatform(deploys());
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { exitCode, stdout } = await user.berth(["deploy", "-p", "demo"]);
  assert.equal(exitCode, 0);
  assert.equal(stdout, `${shownLog}Live: deployment #1 of demo\n`);
  const raw = await user.berth(["deploy", "-p", "demo", "--raw"]);
  assert.equal(raw.stdout, `${log.join("")}Live: deployment #1 of demo\n`);
});

test("deploy --json prints one document, the deployment", async () => {
  await using platform = await startScriptedPlatform(deploys());
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { stdout, stderr } = await user.berth(["deploy", "-p", "demo", "--json"]);
  assert.deepEqual(JSON.parse(stdout), sampleDeployment());
  assert.equal(stderr, "");
});

test("rehearse ends when the rehearsal has, and shows what the release command did; a failed one is exit code 7", async () => {
  const rehearsed = { status: "superseded", rehearse_only: true, trigger: "push", number: 9 } as const;
  const table = {
    ...{
      table: "public.orders",
      change: "dropped" as const,
      rows_before: 3,
      rows_after: null,
      rows_removed: 3,
      rows_updated: 0,
    },
    ...{ columns_dropped: [], changes: [], reads_blocked_seconds: 0, writes_blocked_seconds: 0, statement: null },
  } as const;
  const times = { started_at: "2026-01-01T00:00:00.000Z", finished_at: "2026-01-01T00:00:01.000Z" };
  const report = { seconds: 1, exit_code: 0, tables: [table], further_tables: 0 };
  const rehearsal = { ...times, status: "passed", reason: null, method: "copy", copy_bytes: 4096, report } as const;
  const failure = sampleFailure({ stage: "release", code: "rehearsal_failed" });
  for (const [outcome, code, said] of [
    [null, 0, /orders: dropped with 3 rows/],
    [failure, 7, /rehearsal_failed/],
  ] as const) {
    const script = deploys(sampleBuild({ rehearse_only: true }), sampleDeployment({ ...rehearsed, failure: outcome }));
    await using platform = await startScriptedPlatform({
      ...script,
      "deployments.rehearse": () => ({ build_id: sampleBuild().id, commit: sampleBuild().commit }),
      "deployments.rehearsal": () => ({ rehearsal }),
    });
    await using user = await cliUser({ url: platform.url, token: goodToken });
    const { exitCode, stdout, stderr } = await user.berth(["rehearse", "--ref", "fix", "-p", "demo"]);
    assert.equal(exitCode, code, stderr);
    assert.match(stdout + stderr, said);
    assert.deepEqual(platform.seen.find(({ name }) => name === "deployments.rehearse")?.body, { branch: "fix" });
  }
});

test("a failed build and a failed deployment are exit code 7, with the failure's own code", async () => {
  const failure = sampleFailure();
  for (const script of [
    deploys(sampleBuild({ status: "failed", failure })),
    deploys(sampleBuild(), sampleDeployment({ status: "failed", failure })),
  ]) {
    await using platform = await startScriptedPlatform(script);
    await using user = await cliUser({ url: platform.url, token: goodToken });
    const { exitCode, stderr } = await user.berth(["deploy", "-p", "demo"]);
    assert.equal(exitCode, 7);
    for (const part of ["npm ci failed.", "install_failed", "Commit the lock file."])
      assert.ok(stderr.includes(part), part);
  }
});

test("builds log -f --json goes on to the end and prints the whole log as one document", async () => {
  await using platform = await startScriptedPlatform(deploys());
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { exitCode, stdout, stderr } = await user.berth(["builds", "log", "bld_1", "-f", "--json"]);
  assert.equal(exitCode, 0, stderr);
  const document = JSON.parse(stdout) as Record<string, unknown>;
  assert.deepEqual([document["log"], document["complete"]], [log.join(""), true]);
});

test("builds log without -f prints what is there of a build that runs, in words and as one document", async () => {
  const parts = [log[0], log[1], ""] as const;
  const script: Script = {
    "builds.logs": ({ query }) => {
      const offset = Number(query.get("offset"));
      const text = parts[offset] as string;
      const next_offset = text === "" ? offset : offset + 1;
      const times = text === "" ? [] : [{ line: 0, at: `2026-01-31T09:00:0${offset}.000Z` }];
      return { build_id: "bld_1", status: "running", log: text, times, next_offset, complete: false };
    },
  };
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const words = await user.berth(["builds", "log", "bld_1"]);
  assert.deepEqual([words.exitCode, words.stdout], [0, shownLog]);
  const json = await user.berth(["builds", "log", "bld_1", "--json"]);
  assert.equal(json.exitCode, 0, json.stderr);
  assert.deepEqual(JSON.parse(json.stdout), {
    build_id: "bld_1",
    status: "running",
    log: log.join(""),
    times: [
      { line: 0, at: "2026-01-31T09:00:00.000Z" },
      { line: 1, at: "2026-01-31T09:00:01.000Z" },
    ],
    next_offset: 2,
    complete: false,
  });
});

test("builds log -f ends with 7 for a build that failed, and for one whose deployment did", async () => {
  const failure = sampleFailure();
  for (const build of [
    sampleBuild({ status: "failed", failure }),
    sampleBuild({ status: "cancelled" }),
    sampleBuild({ deployment: { number: 3, status: "failed", failure, image_bytes: null } }),
  ])
    for (const flags of [["-f"], ["-f", "--json"]]) {
      await using platform = await startScriptedPlatform(deploys(build));
      await using user = await cliUser({ url: platform.url, token: goodToken });
      const { exitCode, stdout, stderr } = await user.berth(["builds", "log", "bld_1", ...flags]);
      assert.equal(exitCode, 7, stderr);
      assert.ok(stdout.includes("Building"), stdout);
    }
});

test("logs -f goes on with new lines until Ctrl-C, which ends it at once with 130", async () => {
  let page = 0;
  let seen: (() => void) | undefined;
  const followed = new Promise<void>((resolve) => (seen = resolve));
  const line = (text: string) => ({ at: null, deployment: 1, process: "web", replica: 0, level: null, text });
  await using platform = await startScriptedPlatform({
    "logs.list": ({ query }) => {
      page += 1;
      if (page === 3) seen?.();
      if (page > 2) return { source: "runtime", lines: [], next_cursor: null };
      return { source: "runtime", lines: [line(`after ${query.get("after")}`)], next_cursor: `c${page}` };
    },
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { child, ended } = user.start(["logs", "-f", "-p", "demo", "--json"]);
  await followed;
  child.kill("SIGINT");
  const { exitCode, stdout, stderr } = await ended;
  assert.equal(exitCode, 130);
  assert.match(stderr, /Interrupted[\s\S]*You stopped reading; demo keeps running/);
  assert.deepEqual(
    stdout
      .trim()
      .split("\n")
      .map((text) => JSON.parse(text).text),
    ["after null", "after c1"],
  );
  assert.ok(!stderr.includes("    at "), stderr);
});

test("cancel ends the newest build, and deploy says after Ctrl-C how", async () => {
  const build = sampleBuild({ status: "cancelled" });
  await using platform = await startScriptedPlatform({
    "builds.list": () => ({ builds: [build], next_cursor: null }),
    "builds.cancel": () => build,
    "deployments.create": () => ({ build_id: build.id, commit: build.commit }),
    "builds.logs": () => ({
      build_id: build.id,
      status: "running",
      log: "",
      times: [],
      next_offset: 0,
      complete: false,
    }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  assert.match((await user.berth(["cancel", "-p", "demo"])).stdout, /^Cancelled build #\d+\. What was live before/);
  const { child, ended } = user.start(["deploy", "-p", "demo"]);
  await until(() => platform.seen.some(({ name }) => name === "builds.logs") || undefined, { timeoutMs: guardMs });
  child.kill("SIGINT");
  const { exitCode, stderr } = await ended;
  assert.equal(exitCode, 130);
  assert.match(stderr, new RegExp(`The deployment goes on[^]*berth cancel ${build.id}`));
});

test("rollback names the variables that it changed and the branch that holds newer commits, if one does", async () => {
  let newer_branch: string | null = "main";
  await using platform = await startScriptedPlatform({
    "deployments.rollback": () => ({
      status: "rolled_back",
      from: 14,
      to: 12,
      deployment: sampleDeployment({ number: 13, trigger: "rollback" }),
      changed_variables: ["COLOUR", "SHAPE"],
      newer_branch,
    }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { exitCode, stdout, stderr } = await user.berth(["rollback", "#12", "-p", "demo"]);
  assert.deepEqual([exitCode, platform.seen.at(-1)?.body], [0, { deployment: 12 }], stderr);
  assert.match(stdout, /demo from #14 to #12, as deployment #13/);
  assert.match(stderr, /changed these variables: COLOUR, SHAPE/);
  assert.match(stderr, /main still holds the newer commits/);
  newer_branch = null;
  assert.doesNotMatch((await user.berth(["rollback", "-p", "demo"])).stderr, /newer commits/);
});

test("rollback and compare explain a project's name in the place of a deployment's number", async () => {
  await using platform = await startScriptedPlatform({});
  await using user = await cliUser({ url: platform.url, token: goodToken });
  for (const command of ["rollback", "compare"]) {
    const { exitCode, stderr } = await user.berth([command, "my-app"]);
    assert.equal(exitCode, 2, stderr);
    assert.match(stderr, /must be a number[^]*`berth deployments` lists the numbers\. Name a project with `-p <slug>`/);
  }
});

test("compare prints commits and lines, and nothing in them controls the terminal", async () => {
  const file = { status: "changed", added: 1, removed: 1, binary: false, cut: false } as const;
  const asked: unknown[] = [];
  await using platform = await startScriptedPlatform({
    "deployments.lines": ({ query }) => {
      asked.push(String(query));
      const [commit, at] = ["a".repeat(40), "2026-01-02T03:04:05.678Z"];
      return {
        commits: [{ side: "added", commit, author: "Ada", message: "Say two\u001b[2J", at }],
        files: [
          { ...file, path: "a.txt", lines: "@@ -1 +1 @@\n-one\u001b[2J\n+two\n" },
          { ...file, path: "b.bin", binary: true, added: null, removed: null, lines: null },
        ],
        complete: false,
      };
    },
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { stdout } = await user.berth(["compare", "1", "2", "--lines", "-p", "demo"]);
  assert.equal(
    stdout,
    `+ aaaaaaaa  Say two  Ada

changed a.txt  +1 -1
@@ -1 +1 @@
-one
+two

changed b.bin  binary

More differs than is shown; \`--file <path>\` shows one file.
`,
  );
  const { exitCode } = await user.berth(["compare", "--file", "a.txt", "--json", "-p", "demo"]);
  assert.equal(exitCode, 0);
  await user.berth(["compare", "--build", "7", "-p", "demo"]);
  assert.deepEqual(asked, ["from=1&to=2", "path=a.txt", "build=7"]);
  assert.match(
    (await user.berth(["compare", "1", "2", "--build", "7"])).stderr,
    /either a second deployment or --build/,
  );
});

test("rollback waits while the platform restarts the application with changed variables, but not for a push", async () => {
  let status: "starting" | "active" = "starting";
  let trigger: "variables" | "push" = "variables";
  const script: Script = {
    "deployments.rollback": () =>
      status === "starting"
        ? new Refusal("deploy_in_progress")
        : {
            status: "rolled_back",
            from: 2,
            to: 1,
            deployment: sampleDeployment({ trigger: "rollback" }),
            changed_variables: [],
            newer_branch: null,
          },
    "deployments.list": () => {
      const deployments = [sampleDeployment({ status, trigger })];
      if (trigger === "variables") status = "active";
      return { deployments, next_cursor: null };
    },
  };
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const waited = await user.berth(["rollback", "-p", "demo"]);
  assert.equal(waited.exitCode, 0, waited.stderr);
  assert.match(waited.stderr, /demo restarts at the moment/);
  [status, trigger] = ["starting", "push"];
  const refused = await user.berth(["rollback", "-p", "demo"]);
  assert.equal(refused.exitCode, 5, refused.stderr);
});
