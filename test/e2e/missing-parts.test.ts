import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { until } from "../../src/kit/until.ts";
import { eventually, guardMs } from "../support/eventually.ts";
import { notesApp } from "./apps.ts";
import { createApp, launch, layGround, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";

// Drawn with other operation files: it starts a whole platform a dozen times.

// Parts that a test below removes, each with a rule of its own.
const named = [
  ...["secrets.key", "control-database", "databases", "releases", "repositories", "storage", "backups", "ssh"],
  ...["machine-name", "admin-token", "recovery.key"],
];
// The parts that docs/data-folder.md lists as made again.
const madeAgain = [
  ...["berthd.lock", "build-engine", "builds", "caches", "compiled-code", "containers", "dashboard", "edge", "git"],
  ...[
    "haproxy",
    "logs",
    "outbox",
    "platform-backup",
    "recovery.pub",
    "reserve",
    "run-folder",
    "runtime",
    "sandbox",
    "toolchain",
  ],
];

describe("a start without a part of the data folder names it and replaces nothing", () => {
  let platform: TestPlatform;
  let app: TestApp;
  let serving: string;

  before(async () => {
    platform = await startPlatform({ BERTH_MONITOR_SECONDS: "1" });
    app = await createApp(platform, "notes", notesApp);
    assert.equal((await platform.call("POST", "/v1/projects/notes/database")).status, 201);
    const pushed = await app.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    serving = (await platform.visit("notes", "/add")).body;
    assert.equal(serving, "rows 1 file kept");
    assert.equal((await platform.call("POST", "/v1/projects/notes/backups", {})).status, 201);
    await eventually(async () => (await newestBackup())?.status === "completed", "the backup is complete");
    // Deleting a file measures the folder at once.
    const removed = await platform.call("DELETE", "/v1/projects/notes/disk/storage", { path: "gone" });
    assert.equal(removed.status, 200, JSON.stringify(removed.body));
    await platform.end("SIGTERM");
  });
  after(() => platform?.destroy());

  const newestBackup = async () =>
    (await platform.call<{ backups: { status: string }[] }>("GET", "/v1/projects/notes/backups")).body.backups[0];
  const at = (part: string) => join(platform.dataDir, part);
  const away = (part: string) => `${platform.dataDir}.${part}`;
  /** Undefined while the edge does not accept connections. */
  const visit = () => platform.visit("notes").catch(() => undefined);
  const served = async () => {
    const serves = async () => (await visit())?.body === serving;
    await eventually(serves, "the application serves its rows and files");
  };

  /** Starts the platform without these parts, and puts those back that the start did not create again. */
  async function without(parts: readonly string[], look: () => Promise<void>): Promise<void> {
    for (const part of parts) renameSync(at(part), away(part));
    const env = { ...(await layGround({}, platform.dataDir)).env, ...own() };
    const child = launch(env);
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const over = new Promise<void>((resolve) => child.once("close", () => resolve()));
    const isUp = async () =>
      child.exitCode === null
        ? (await fetch(`${platform.api}/healthz`).catch(() => undefined))?.ok || undefined
        : false;
    try {
      refusal = (await until(isUp, { timeoutMs: guardMs })) === true ? "" : output;
      await look();
    } finally {
      child.kill("SIGTERM");
      await over;
      for (const part of parts) {
        rmSync(at(part), { recursive: true, force: true });
        renameSync(away(part), at(part));
      }
    }
  }
  const instances = () =>
    existsSync(at("databases")) ? readdirSync(at("databases")).filter((name) => name.startsWith("dbs_")) : [];
  let refusal = "";
  const own = () => ({
    BERTH_HTTP_PORT: new URL(platform.api).port,
    BERTH_EDGE_PORT: `${platform.edgePort}`,
    BERTH_MONITOR_SECONDS: "1",
  });

  type Check = { check: string; subject: string | null; status: string; detail: string; hint: string | null };
  const found = (subject: string, detail: RegExp) =>
    eventually(async () => {
      const { checks } = (await platform.call<{ checks: Check[] }>("GET", "/v1/status")).body;
      return checks.find((each) => each.subject === `main/notes ${subject}` && detail.test(each.detail));
    }, `the status names the missing ${subject}`);
  const readyz = async () => JSON.stringify(await (await fetch(`${platform.api}/readyz`)).json());
  const alerts = async () => JSON.stringify((await platform.call("GET", "/v1/alerts")).body);

  it("databases: failed, not replaced, no backup; it serves again once the folder is back", async () => {
    await without(["databases"], async () => {
      await found("database", /databases\/dbs_\w+ is missing/);
      assert.match(await readyz(), /not_ready.*databases\/dbs_/);
      assert.match(await alerts(), /databases\/dbs_/);
      assert.notEqual((await platform.call("POST", "/v1/projects/notes/backups", {})).status, 201);
      assert.equal((await platform.call("POST", "/v1/projects/notes/database")).status, 503);
      assert.deepEqual(instances(), []);
    });
    await without([], served);
  });

  it("secrets.key: the start is refused while sealed rows exist, and no key is created", async () => {
    await without(["secrets.key"], async () => {
      assert.match(refusal, /key file .*secrets\.key is missing/);
      assert.doesNotMatch(refusal, /^ +at /m);
      assert.equal(existsSync(at("secrets.key")), false);
    });
  });

  it("control-database: the start is refused, and no empty one is created", async () => {
    await without(["control-database"], async () => {
      assert.match(refusal, /control plane's database is missing/);
      assert.equal(existsSync(at("control-database")), false);
    });
  });

  it("releases: built again from their commits by themselves", async () => {
    await without(["releases"], served);
  });

  it("repositories: pushes are refused with the remedy", async () => {
    await without(["repositories"], async () => {
      await found("repository", /repositories\/prj_\w+ is missing/);
      await app.commit({ "more.txt": "more" });
      const pushed = await app.push();
      assert.notEqual(pushed.exitCode, 0);
      assert.match(pushed.stderr, /repositories\/prj_\w+ is missing|503/);
      assert.match(await readyz(), /repositories\/prj_/);
    });
  });

  it("storage: the application does not start with an empty folder", async () => {
    await without(["storage"], async () => {
      await found("storage", /storage\/prj_\w+ is missing/);
      await eventually(async () => (await visit())?.status === 503, "the application does not run");
    });
    await without([], served);
  });

  it("backups: the missing file of the newest backup is named", async () => {
    await without(["backups"], async () => void (await found("backup", /newest backup, bak_\w+, is missing/)));
  });

  it("ssh: git over SSH stays closed instead of showing another host key", async () => {
    await without(["ssh"], async () => {
      await eventually(
        async () => /host key ssh\/host_ed25519 is missing/.test(await readyz()),
        "readyz names the host key",
      );
      assert.equal(existsSync(join(at("ssh"), "host_ed25519")), false);
    });
  });

  it("machine-name and admin-token: the name comes back from its row, the token stays the only one", async () => {
    const name = readFileSync(at("machine-name"), "utf8");
    await without(["machine-name", "admin-token"], async () => {
      await served();
      assert.equal(readFileSync(at("machine-name"), "utf8"), name);
      assert.equal(existsSync(at("admin-token")), false);
    });
  });

  it("every other part holds nothing that only it knows, and is made again, toolchains by a build", async () => {
    const others = readdirSync(platform.dataDir).filter((part) => !named.includes(part));
    assert.deepEqual(
      others.filter((part) => !madeAgain.includes(part)),
      [],
      "a new part of the data folder needs a rule here and in docs/data-folder.md",
    );
    // A commit is built again at most once an hour, and the test of `releases` did that.
    await without([], async () => {
      await served();
      const pushed = await app.push();
      assert.equal(pushed.exitCode, 0, pushed.stderr);
    });
    await without(others, async () => {
      await served();
      const { builds } = (await platform.call<{ builds: { id: string }[] }>("GET", "/v1/projects/notes/builds")).body;
      const log = await platform.call("GET", `/v1/builds/${builds.at(-1)?.id}/logs`);
      assert.equal(log.status, 200, JSON.stringify(log.body));
    });
  });

  it("a lost database starts empty only when its owner says so", async () => {
    renameSync(at("databases"), away("databases"));
    mkdirSync(at("databases"), { mode: 0o700 });
    await without([], async () => {
      await found("database", /databases\/dbs_/);
      const created = await platform.call("POST", "/v1/projects/notes/database", { start_empty: true });
      assert.equal(created.status, 200, JSON.stringify(created.body));
      await eventually(async () => (await visit())?.body === "rows 0 file kept", "the application serves without rows");
      assert.equal((await platform.call("POST", "/v1/projects/notes/database", { start_empty: true })).status, 409);
    });
  });
});
