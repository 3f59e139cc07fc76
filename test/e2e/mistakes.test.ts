import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createApp, nodeApp, type TestApp } from "./platform.ts";
import { inEachWay, startVisitedPlatform, type VisitedPlatform } from "./ways.ts";

// Drawn with other journey files: it starts whole platforms, which takes too long for every run.

let platform: VisitedPlatform;
let app: TestApp;

interface Failure {
  readonly stage: string;
  readonly code: string;
  readonly summary: string;
  readonly hint: string;
  readonly log_tail: readonly string[];
}

/** A mistake in a release, and what its failure must contain. */
interface Mistake {
  readonly name: string;
  readonly files: Record<string, string>;
  readonly code: string;
  readonly stage: string;
  /** Matches the summary, which must describe this mistake. */
  readonly says: RegExp;
  /** Matches the log tail and the output of the push, which must contain the application's last output. */
  readonly shows: RegExp;
}

const listen = `.listen(process.env.PORT, process.env.HOST)`;

const mistakes: Mistake[] = [
  {
    name: "the build fails",
    files: {
      ...nodeApp("bad"),
      "package.json": JSON.stringify({ name: "shop", scripts: { start: "node server.js", build: "node build.js" } }),
      "build.js": `console.log("compiling the moon"); process.exit(4);`,
    },
    code: "build_script_failed",
    stage: "build",
    says: /build/,
    shows: /compiling the moon/,
  },
  {
    name: "the release command fails",
    files: {
      ...nodeApp("bad"),
      Procfile: "web: node server.js\nrelease: node migrate.js\n",
      "migrate.js": `console.error("relation does not exist"); process.exit(7);`,
    },
    code: "release_failed",
    stage: "release",
    says: /exit code 7: node migrate\.js/,
    shows: /relation does not exist/,
  },
  {
    name: "the application crashes on boot",
    files: nodeApp("bad", `throw new Error("MISSING_SETTING is not set");`),
    code: "crash_on_boot",
    stage: "boot",
    says: /exit code 1/,
    shows: /MISSING_SETTING is not set/,
  },
  {
    name: "the application listens on a wrong port",
    files: {
      ...nodeApp("bad"),
      "server.js": `require("node:http").createServer((q, s) => s.end("bad")).listen(4321, () => console.log("listening on 4321"));`,
    },
    code: "wrong_port",
    stage: "health",
    says: /port 3000/,
    shows: /listening on 4321/,
  },
  {
    name: "the health check answers 500",
    files: {
      ...nodeApp("bad"),
      "server.js": `require("node:http").createServer((q, s) => { s.statusCode = 500; console.log("no template"); s.end(); })${listen};`,
    },
    code: "health_check_failed",
    stage: "health",
    says: /answered 500/,
    shows: /no template/,
  },
  {
    name: "the health check hangs",
    files: {
      ...nodeApp("bad"),
      "server.js": `require("node:http").createServer(() => console.log("thinking"))${listen};`,
    },
    code: "health_check_timeout",
    stage: "health",
    says: /no answer/,
    shows: /thinking/,
  },
  {
    name: "the application ends by itself",
    files: nodeApp("bad", `console.log("nothing to do"); process.exit(0);`),
    code: "exited_on_boot",
    stage: "boot",
    says: /exited with code 0/,
    shows: /nothing to do/,
  },
];

inEachWay({ possible: ({ over }) => over === "http" }, (way) => {
  before(async () => {
    // Some mistakes only fail once this time is over. It must be long enough for a process that starts on a busy machine.
    platform = await startVisitedPlatform(way, ["shop"], { BERTH_HEALTH_BUDGET_SECONDS: "15" });
    app = await createApp(platform, "shop", nodeApp("good"));
    const pushed = await app.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
  });
  after(() => platform?.destroy());

  for (const mistake of mistakes) {
    test(`${mistake.name}: the push fails with ${mistake.code}, and the old deployment serves`, async () => {
      const before = await app.remoteHead();
      const active = (await newest("deployments", "active"))?.id;
      await app.commit({ Procfile: "web: node server.js\n", ...mistake.files });
      const pushed = await app.push();
      assert.notEqual(pushed.exitCode, 0);
      const failure = await failureOf(mistake.stage);
      assert.deepEqual([failure.stage, failure.code], [mistake.stage, mistake.code]);
      assert.match(failure.summary, mistake.says);
      for (const text of [failure.summary, failure.hint]) {
        assert.match(text, /^[A-Z`].{20}/, "the text is a sentence");
        assert.ok(pushed.stderr.includes(text), `the output of the push lacks: ${text}\n${pushed.stderr}`);
      }
      assert.match(failure.log_tail.join("\n"), mistake.shows);
      assert.match(pushed.stderr, mistake.shows);
      const end = new RegExp(`(?:build|deploy\\w*) failed \\(${mistake.code}\\)\\. No traffic was switched\\.`, "i");
      assert.match(pushed.stderr, end);
      assert.match(pushed.stderr, /pre-receive hook declined/);
      assert.equal(await app.remoteHead(), before);
      assert.equal((await newest("deployments", "active"))?.id, active);
      assert.deepEqual(await visit(), [200, "good"]);
    });
  }

  test("each mistake has its own code", () => {
    assert.equal(new Set(mistakes.map((mistake) => mistake.code)).size, mistakes.length);
  });

  test("a repaired application goes live after all of them", async () => {
    await app.commit({ ...nodeApp("repaired"), Procfile: "web: node server.js\n" });
    const pushed = await app.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.deepEqual(await visit(), [200, "repaired"]);
  });

  test("a rollback to a deployment that no longer becomes healthy fails with 502 and the reason", async () => {
    if (!platform.storage) await platform.call("PUT", "/v1/projects/shop/settings", { storage: true });
    // Healthy only once: the first start writes a file, and later starts exit when they find it.
    const once = `const mark = process.env.STORAGE_DIR + "/started"; const fs = require("node:fs"); if (fs.existsSync(mark)) process.exit(5); fs.writeFileSync(mark, "");`;
    await app.commit(nodeApp("once", once));
    assert.equal((await app.push()).exitCode, 0);
    await app.commit(nodeApp("newer"));
    assert.equal((await app.push()).exitCode, 0);
    const answer = await platform.call<{ code: string; error: string }>("POST", "/v1/projects/shop/rollback");
    assert.deepEqual([answer.status, answer.body.code], [502, "previous_unhealthy"]);
    assert.match(answer.body.error, /exit code 5/);
    assert.deepEqual(await visit(), [200, "newer"]);
  });
});

type Row = { id: string; status: string; failure: Failure | null };

async function newest(kind: "builds" | "deployments", status?: string): Promise<Row | undefined> {
  const { body } = await platform.call<Record<string, Row[]>>("GET", `/v1/projects/shop/${kind}`);
  return body[kind]?.find((row) => status === undefined || row.status === status);
}

/** Returns the failure: of the build for the stage `build`, else of the deployment. */
async function failureOf(stage: string): Promise<Failure> {
  const row = await newest(stage === "build" ? "builds" : "deployments");
  assert.equal(row?.status, "failed");
  assert.ok(row.failure);
  return row.failure;
}

async function visit(): Promise<[number, string]> {
  const { status, body } = await platform.visit("shop");
  return [status, body];
}
