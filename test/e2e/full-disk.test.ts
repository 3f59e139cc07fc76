import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Result } from "../../src/contract/routes.ts";
import { run, runOk } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { createApp, launch, layGround, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";
import { eventually, guardMs } from "../support/eventually.ts";
import { ledgerTable, startLedger } from "../support/ledger.ts";

// Drawn with other operation files: it starts whole platforms, which takes too long for every run.

const mib = 1024 * 1024;
const settings = { BERTH_DISK_FLOOR_MIB: "160", BERTH_STORAGE_MIB: "64", BERTH_DATABASE_DISK_MIB: "64" };
const patience = { timeoutMs: guardMs, atMostMs: 500 };

describe(
  "a tenant that fills the disk",
  { skip: process.getuid?.() !== 0 && "only root can mount a small disk" },
  () => {
    const dataDir = mkdtempSync(join(tmpdir(), "berth-full-"));
    let platform: TestPlatform;
    let greedy: TestApp;
    let neighbour: TestApp;

    before(async () => {
      await runOk({ file: "mount", args: ["-t", "tmpfs", "-o", "size=1500m,mode=700", "tmpfs", dataDir] });
      platform = await startPlatform(settings, { dataDir });
      neighbour = await createApp(platform, "neighbour", hungryApp());
      assert.equal((await neighbour.push()).exitCode, 0);
      greedy = await createApp(platform, "greedy", hungryApp());
      assert.equal((await platform.call("POST", "/v1/projects/greedy/database")).status, 201);
      const pushed = await greedy.push();
      assert.equal(pushed.exitCode, 0, pushed.stderr);
    });
    after(async () => {
      rmSync(join(dataDir, "ballast"), { force: true });
      await platform?.end("SIGINT");
      await run({ file: "umount", args: ["--lazy", dataDir] });
      rmSync(dataDir, { recursive: true, force: true });
    });

    const disk = async () => {
      type Shares = Partial<Record<"storage" | "database", { access: string; used_bytes: number }>>;
      return (await platform.call<Shares>("GET", "/v1/projects/greedy/disk")).body;
    };
    const becomes = async (kind: "storage" | "database", access: string) => {
      const seen = await until(async () => ((await disk())[kind]?.access === access ? true : undefined), patience);
      assert.ok(
        seen,
        `${kind} did not become ${access}: ${JSON.stringify(await disk())}\n${platform.output().slice(-2000)}`,
      );
    };
    const othersAreFine = async () => {
      assert.equal((await platform.visit("neighbour", "/write")).body, "written");
      const { status, body } = await platform.call("GET", "/v1/overview");
      assert.equal(status, 200, `${JSON.stringify(body)}\n${platform.output().slice(-4000)}`);
    };
    const writes = (expected: string) =>
      until(async () => ((await platform.visit("greedy", "/write")).body === expected ? true : undefined), patience);

    it("gets a read-only database, and can write again after it has dropped a table", async () => {
      const url = (await platform.visit("greedy", "/database")).body;
      const query = async (text: string) => {
        const client = new pg.Client({ connectionString: url });
        client.on("error", () => {});
        await client.connect();
        try {
          return await client.query(text);
        } finally {
          await client.end().catch(() => {});
        }
      };
      // Without autovacuum, the rows of an aborted insert keep their space.
      await query("create table filled (a text) with (autovacuum_enabled = false)");
      const fill = (rows: number) =>
        `insert into filled select repeat(md5(g::text), 30) from generate_series(1, ${rows}) g`;
      // One insert exceeds the limit. The platform may end its session (57P01) before the insert completes.
      await query(fill(80_000)).catch((error: { code?: string }) => assert.equal(error.code, "57P01"));
      await becomes("database", "read_only");
      const refused = async () => {
        const error = await query(fill(1)).then(
          () => undefined,
          (reason: Error & { code?: string }) => reason,
        );
        return error?.code === "25006" ? true : undefined;
      };
      assert.ok(await until(refused, patience), "writes were never refused");
      await othersAreFine();
      await query("set transaction read write; drop table filled");
      await becomes("database", "open");
      assert.ok(
        await until(
          () =>
            query("create table again (a int)").then(
              () => true,
              () => undefined,
            ),
          patience,
        ),
      );
    });

    it("gets read-only storage, and can write again after files were deleted", async () => {
      // The platform may stop the application before the request completes.
      await platform.visit("greedy", "/fill?mib=160").catch(() => undefined);
      await becomes("storage", "read_only");
      assert.ok(await writes("EROFS"), "the application still writes");
      await othersAreFine();
      const removed = await platform.call("DELETE", "/v1/projects/greedy/disk/storage", { path: "big" });
      assert.equal(removed.status, 200, JSON.stringify(removed.body));
      await becomes("storage", "open");
      assert.ok(await writes("written"), "the application cannot write again");
    });

    it("has its build ended, but not its neighbour's, and can build again", async () => {
      await neighbour.commit(hungryApp("for second in 1 2 3 4 5 6 7 8; do echo $second; sleep 1; done"));
      const beside = neighbour.push();
      await greedy.commit(hungryApp("head -c 20G /dev/zero > big || true; sleep 60"));
      const pushed = await greedy.push();
      assert.notEqual(pushed.exitCode, 0);
      assert.match(pushed.stderr, /of the running builds this one took the most: \d+ MiB/);
      const { exitCode, stderr } = await beside;
      assert.equal(exitCode, 0, stderr);
      await othersAreFine();
      await greedy.commit(hungryApp());
      const again = await greedy.push();
      assert.equal(again.exitCode, 0, again.stderr);
    });

    it("causes a platform to report a full disk, restart on it, and recover once there is space", async () => {
      const { bavail, bsize } = statfsSync(dataDir);
      const ballast = String(bavail * bsize - 10 * mib);
      await runOk({ file: "fallocate", args: ["--length", ballast, join(dataDir, "ballast")] });
      const { status, body } = await platform.call<{ code: string }>("POST", "/v1/projects/greedy/deployments");
      assert.deepEqual([status, body.code], [507, "storage_full"]);
      await greedy.commit({ more: "more" });
      const pushed = await greedy.push();
      assert.match(pushed.stderr, /storage_full/);
      assert.ok(!pushed.timedOut, "the push hung");
      await platform.end("SIGKILL");
      await platform.restart();
      assert.equal((await platform.call("GET", "/v1/overview")).status, 200);
      rmSync(join(dataDir, "ballast"));
      const deployed = await until(async () => ((await greedy.push()).exitCode === 0 ? true : undefined), patience);
      assert.ok(deployed, platform.output().slice(-3000));
      await othersAreFine();
    });
  },
);

describe(
  "branches on a disk that fills up",
  { skip: process.getuid?.() !== 0 && "only root can mount a small disk" },
  () => {
    const dataDir = mkdtempSync(join(tmpdir(), "berth-full-"));
    const ballast = join(dataDir, "ballast");
    let platform: TestPlatform;

    before(async () => {
      await runOk({ file: "mount", args: ["-t", "tmpfs", "-o", "size=3g,mode=700", "tmpfs", dataDir] });
      platform = await startPlatform({ BERTH_DISK_FLOOR_MIB: "240", BERTH_MONITOR_SECONDS: "1" }, { dataDir });
      const app = await createApp(platform, "shop", hungryApp());
      assert.equal((await platform.call("POST", "/v1/projects/shop/database")).status, 201);
      const previews = { previews: ["*"], preview_data: "branch" };
      assert.equal((await platform.call("PUT", "/v1/projects/shop/settings", previews)).status, 200);
      const main = await app.push();
      assert.equal(main.exitCode, 0, main.stderr);
      const client = await connect("shop");
      await client.query(`${ledgerTable}; create table filler (body text)`);
      // Beyond what a project may have on a disk that is short of space.
      await client.query(fill(90_000));
      await client.end();
      const preview = await app.push("cub");
      assert.equal(preview.exitCode, 0, preview.stderr);
    });
    after(async () => {
      rmSync(ballast, { force: true });
      await platform?.end("SIGINT");
      await run({ file: "umount", args: ["--lazy", dataDir] });
      rmSync(dataDir, { recursive: true, force: true });
    });

    const fill = (rows: number) =>
      `insert into filler select repeat(md5(i::text), 30) from generate_series(1, ${rows}) i`;
    const connect = async (slug: string) => {
      const client = new pg.Client({ connectionString: (await platform.visit(slug, "/database")).body });
      client.on("error", () => {});
      await client.connect();
      return client;
    };
    const branch = async () => {
      const path = "/v1/projects/shop/database/branches/cub--shop";
      return (await platform.call<Result<"branches.get">>("GET", path)).body;
    };
    const diskAlerts = async () => {
      const { alerts } = (await platform.call<Result<"alerts.list">>("GET", "/v1/alerts")).body;
      return alerts.filter(({ check, severity }) => check === "disk" && severity === "critical");
    };
    const leave = (bytes: number) => {
      const { bavail, bsize } = statfsSync(dataDir);
      return runOk({ file: "fallocate", args: ["--length", String(bavail * bsize - bytes), ballast] });
    };
    const answers = () =>
      eventually(async () => {
        const client = await connect("cub--shop").catch(() => undefined);
        const { rows } = (await client?.query("select count(*)::int from filler").catch(() => undefined)) ?? {};
        await client?.end().catch(() => {});
        return rows !== undefined && (await branch()).failure === null;
      }, "the branch answers");

    /** The branch is stopped by what happens to the disk, and says so; no write of its source fails meanwhile. */
    async function stopsWhile(fillDisk: () => Promise<unknown>): Promise<void> {
      await answers();
      const source = await connect("shop");
      await source.query("truncate ledger");
      await source.end();
      const ledger = startLedger(() => connect("shop"), { writers: 2, pauseMs: 20 });
      await eventually(() => ledger.commits.size, "its source writes");
      await fillDisk();
      const failure = await eventually(async () => (await branch()).failure, "the branch says why it stopped");
      assert.deepEqual(failure.code, "storage_full");
      assert.match(failure.summary, /short of space. The branch is stopped, and starts again once there is room/);
      await eventually(async () => (await diskAlerts()).length > 0, "the operator is alerted");
      await assert.rejects(connect("cub--shop"));
      const more = await platform.call("POST", "/v1/projects/shop/database/branches", { name: "more" });
      assert.deepEqual([more.status, more.body["code"]], [507, "storage_full"]);
      const { size } = ledger.commits;
      await eventually(() => ledger.commits.size > size + 100, "its source writes on");
      const acknowledged = await ledger.stop();
      assert.equal(acknowledged, ledger.commits.size, "no write of its source failed");
      const { database } = (await platform.call<Result<"disk.get">>("GET", "/v1/projects/shop/disk")).body;
      assert.equal(database?.access, "open");
    }

    it("stop while something else fills it, and answer again once there is room", async () => {
      await stopsWhile(() => leave(270 * mib));
      rmSync(ballast);
      await answers();
    });

    it("stop by their own writes, and answer again on a larger disk", async () => {
      await leave(500 * mib);
      const client = await connect("cub--shop");
      await stopsWhile(() =>
        assert.rejects(async () => {
          for (;;) {
            await client.query(fill(4000));
            await sleep(100);
          }
        }),
      );
      await runOk({ file: "mount", args: ["-o", "remount,size=5g", dataDir] });
      await answers();
    });
  },
);

describe("a start on a full disk", { skip: process.getuid?.() !== 0 && "only root can mount a small disk" }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-full-"));
  before(() => runOk({ file: "mount", args: ["-t", "tmpfs", "-o", "size=100m,mode=700", "tmpfs", dataDir] }));
  after(async () => {
    await run({ file: "umount", args: ["--lazy", dataDir] });
    rmSync(dataDir, { recursive: true, force: true });
  });

  for (const left of [0, 3, 40])
    it(`ends with a sentence when ${left} MiB are left`, async () => {
      for (const name of readdirSync(dataDir)) rmSync(join(dataDir, name), { recursive: true, force: true });
      await run({
        file: "dd",
        args: ["if=/dev/zero", `of=${join(dataDir, "ballast")}`, "bs=1M", `count=${100 - left}`],
      });
      const child = launch((await layGround({}, dataDir)).env);
      let output = "";
      for (const stream of [child.stdout, child.stderr])
        stream.on("data", (chunk: Buffer) => (output += String(chunk)));
      const code = await new Promise((resolve) => child.once("close", resolve));
      assert.equal(code, 1, output);
      assert.match(output, /^berthd: The (?:disk of the data folder .* is full|data folder .* cannot be written)/m);
      assert.doesNotMatch(output, /^ {2,}at /m);
    });
});

function hungryApp(build = "true"): Record<string, string> {
  return {
    "package.json": JSON.stringify({ name: "hungry", private: true, scripts: { build, start: "node server.js" } }),
    "server.js": `const fs = require("node:fs");
const file = (name) => process.env.STORAGE_DIR + "/" + name;
require("node:http").createServer((request, response) => {
  const url = new URL(request.url, "http://app");
  try {
    if (url.pathname === "/database") return response.end(process.env.DATABASE_URL);
    if (url.pathname === "/write") fs.writeFileSync(file("small"), "x");
    if (url.pathname === "/fill") for (let n = 0; n < Number(url.searchParams.get("mib")); n += 1) fs.appendFileSync(file("big"), Buffer.alloc(${mib}));
    response.end("written");
  } catch (error) {
    response.end(error.code);
  }
}).listen(process.env.PORT, process.env.HOST);
`,
  };
}
