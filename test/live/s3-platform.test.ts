import assert from "node:assert/strict";
import { mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { zstdDecompressSync } from "node:zlib";
import { Decrypter } from "age-encryption";
import { readIdentity } from "../../src/adapters/platform-archive-age/recovery-key.ts";
import { receive, send } from "../../src/adapters/storage-s3/requests.ts";
import { createApp, layGround, restore, startPlatform, type TestPlatform } from "../e2e/platform.ts";
import { run } from "../../src/kit/exec.ts";
import { cliUser } from "../support/cli.ts";
import { eventually } from "../support/eventually.ts";
import { missingForSwift, startSwift, type SwiftServer } from "../support/swift.ts";

// Drawn with other S3 files: every run tests the same rules on the disk storage.

const bucket = "backups";
// 20,000 rows of 64 random digits each, which do not compress away.
const fill = `const { Client } = require("pg");
(async () => {
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  await client.query("create table if not exists note as select i as id, md5(random()::text) || md5(random()::text) as text from generate_series(1, 20000) i");
  await client.end();
})();
`;
const app = {
  "package.json": JSON.stringify({ name: "notes", private: true, dependencies: { pg: "8.23.1" } }),
  Procfile: "web: node server.js\nrelease: node fill.js\n",
  "fill.js": fill,
  "server.js": `require("node:http").createServer((q, r) => r.end("notes")).listen(process.env.PORT, process.env.HOST);`,
};

interface Backup {
  readonly id: string;
  readonly status: string;
  readonly storage: string;
  readonly size_bytes: number;
  readonly failure: unknown;
}

test(
  "the API creates, verifies and restores backups in a real S3 server, and detects a damaged one",
  {
    skip: missingForSwift,
  },
  async () => {
    const server = await startSwift();
    const settings = await server.bucket(bucket);
    const folder = await mkdtemp(join(tmpdir(), "berth-s3-"));
    let platform = await startPlatform(settings);
    try {
      const notes = await createApp(platform, "notes", app);
      await platform.call("POST", "/v1/projects/notes/database");
      const pushed = await notes.push();
      assert.equal(pushed.exitCode, 0, pushed.stderr);
      const backup = await makeBackup(platform);
      assert.match(backup.storage, /s3/);
      const keys = await keysIn(server);
      assert.equal(keys.length, 1);

      const verified = await platform.call<{ status: string }>("POST", `/v1/backups/${backup.id}/verify`);
      assert.deepEqual([verified.status, verified.body.status], [200, "verified"], JSON.stringify(verified.body));
      const restored = await platform.call<{ database: string }>("POST", "/v1/projects/notes/restore", {
        backup_id: backup.id,
      });
      assert.equal(restored.status, 201, JSON.stringify(restored.body));
      const rows = await platform.call<{ rows: unknown[] }>(
        "GET",
        `/v1/projects/notes/data/tables/public/note?limit=1&database=${restored.body.database}`,
      );
      assert.equal(rows.status, 200, JSON.stringify(rows.body));
      assert.equal(rows.body.rows.length, 1);

      const recoveryKey = join(folder, "recovery.key");
      // The operator moves it away: the platform goes on with its own key.
      await rename(join(platform.dataDir, "recovery.key"), recoveryKey);
      const [key] = keys as [string];
      const object = async () => buffer(await receive({ ...server, bucket }, { method: "GET", key }));
      const verify = async (body: Uint8Array) => {
        await send({ ...server, bucket }, { method: "PUT", key, body: new Uint8Array(body) });
        return (await platform.call<{ status: string }>("POST", `/v1/backups/${backup.id}/verify`)).body.status;
      };
      const stored = await object();
      assert.match(stored.subarray(0, 22).toString(), /^age-encryption.org\/v1\n$/);
      const age = new Decrypter();
      age.addIdentity(readIdentity(recoveryKey));
      const plain = Buffer.from(await age.decrypt(stored));
      assert.equal(zstdDecompressSync(plain).subarray(0, 5).toString(), "PGDMP");
      assert.equal(plain.length, backup.size_bytes);
      for (const at of [60, stored.length >> 1, stored.length - 1]) {
        const flipped = Buffer.from(stored);
        flipped[at] = (flipped[at] ?? 0) ^ 1;
        assert.equal(await verify(flipped), "failed", `the byte at ${at}`);
      }
      assert.equal(await verify(new Uint8Array(backup.size_bytes)), "failed");
      const damaged = await platform.call<{ code: string }>("POST", "/v1/projects/notes/restore", {
        backup_id: backup.id,
      });
      assert.deepEqual([damaged.status, damaged.body.code], [409, "backup_damaged"]);
      assert.equal(await verify(plain), "verified", "what was stored before Berth encrypted");

      const ok = async (...args: string[]) => {
        await using user = await cliUser({ url: platform.api, token: platform.token });
        const { exitCode, stdout, stderr } = await user.berth(args, { env: { BERTH_PROJECT: "notes" } });
        assert.equal(exitCode, 0, stderr);
        return stdout;
      };
      const inStorage = (command: string) => ok("run", `cd "$STORAGE_DIR" && ${command}`);
      await inStorage("head -c 3000000 /dev/urandom > photo && ln -s photo link");
      await ok("backups", "create", "--files");
      const first = (await keysIn(server)).length;
      await inStorage("echo more > note");
      const { id } = JSON.parse(await ok("backups", "create", "--files", "--json")) as { id: string };
      assert.ok((await keysIn(server)).length - first <= 4, "the photo is not stored again");
      assert.match(await ok("backups", "verify", id), /Verified/);
      const { folder: place } = JSON.parse(await ok("backups", "restore", id, "--json")) as { folder: string };
      await inStorage(`cmp photo ${place}/photo && cmp note ${place}/note && test "$(readlink ${place}/link)" = photo`);
      const tar = join(folder, "files.tar");
      await ok("backups", "download", id, "--output", tar);
      const { stdout } = await run({ file: "tar", args: ["--list", "--file", tar] });
      assert.deepEqual(stdout.trim().split("\n"), ["./", "./link", "./note", "./photo"]);

      await makeBackup(platform);
      assert.match(await ok("platform", "backup"), /Backed up: pbk_/);
      assert.match(await ok("platform", "backups"), /completed.*s3.*age1/i);
      for (const each of await keysIn(server, ""))
        if (!each.includes("/platform/") && each !== key)
          assert.match(await firstBytes(server, each), /^age-encryption/, each);
      const digest = await inStorage("sha256sum photo note");
      await platform.destroy();
      const { dataDir } = await layGround();
      const again = await restore({ ...settings, BERTH_DATA: dataDir }, "s3", recoveryKey);
      assert.equal(again.exitCode, 0, again.stderr);
      platform = await startPlatform(settings, { dataDir });
      await eventually(async () => (await platform.visit("notes").catch(() => null))?.body === "notes", "it serves");
      assert.equal(await inStorage("sha256sum photo note"), digest);
      assert.match(await ok("db", "query", "select count(*) from note"), /20000/);
    } finally {
      await platform.destroy();
      await server.close();
      await rm(folder, { recursive: true });
    }
  },
);

async function makeBackup(platform: TestPlatform): Promise<Backup> {
  const asked = await platform.call<{ id: string }>("POST", "/v1/projects/notes/backups");
  assert.equal(asked.status, 201, JSON.stringify(asked.body));
  const look = async () => (await platform.call<Backup>("GET", `/v1/backups/${asked.body.id}`)).body;
  await eventually(async () => (await look()).status !== "running", "the backup ends");
  const backup = await look();
  assert.equal(backup.status, "completed", JSON.stringify(backup));
  return backup;
}

async function firstBytes(server: SwiftServer, key: string): Promise<string> {
  const answer = await receive({ ...server, bucket }, { method: "GET", key, expected: [404] });
  const bytes = await buffer(answer);
  // The archive deletes what it no longer needs.
  return answer.statusCode === 404 ? "age-encryption" : bytes.subarray(0, 22).toString();
}

/** Lists what backups have stored; unless it is asked for, without what the archive of the database stores. */
async function keysIn(server: SwiftServer, without = "/archive/"): Promise<string[]> {
  const { text } = await send({ ...server, bucket }, { method: "GET", query: { "list-type": "2" } });
  const keys = [...text.matchAll(/<Key>([^<]+)<\/Key>/g)].map((match) => match[1] as string);
  return keys.filter((key) => without === "" || !key.includes(without));
}
