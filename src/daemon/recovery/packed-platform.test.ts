import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { generateX25519Identity } from "age-encryption";
import { testDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { testFolder } from "../../../test/support/test-folder.ts";
import { pathsIn } from "../config.ts";
import { findPostgres } from "../setup/find-program.ts";
import { run } from "../../kit/exec.ts";
import {
  bundleOf,
  createAgePlatformArchive,
  partsIn,
  unpackPlatform,
} from "../../adapters/platform-archive-age/age-platform-archive.ts";
import { keptFiles } from "./kept-files.ts";
import { ensureRecoveryKey, readIdentity } from "../../adapters/platform-archive-age/recovery-key.ts";

const root = testFolder("platform-archive");
const key = { identity: join(root, "recovery.key"), recipient: join(root, "recovery.pub") };
const never = new AbortController().signal;
let database: TestDatabase;
let pgRestore: string | null;
let archive: ReturnType<typeof createAgePlatformArchive>;
const dir = join(root, "packing");

let hasRoom = true;
const bundles: Readonly<Record<string, () => Readable>> = {
  prj_one: () => Readable.from([Buffer.from("bundle of prj_one")]),
  // More than pipes hold.
  prj_large: () => Readable.from([Buffer.alloc(4 * 1024 ** 2)]),
  prj_broken: () => assert.fail("git failed"),
  prj_cut: () =>
    Readable.from(
      (async function* () {
        yield Buffer.from("half");
        throw new Error("git failed");
      })(),
    ),
};

before(async () => {
  database = await testDatabase();
  const found = await findPostgres({ searchPath: process.env["PATH"] ?? "", ownFolders: [] });
  pgRestore = found?.pgRestore ?? null;
  writeFileSync(join(root, "secrets.key"), "sealed");
  archive = createAgePlatformArchive({
    ...{ dir, connection: database.connection, pgDump: found?.pgDump ?? null },
    repositories: { pack: async (id) => bundles[id]?.() ?? null },
    hasRoom: async () => hasRoom,
    files: { "secrets.key": join(root, "secrets.key"), lost: join(root, "lost") },
    settings: { BERTH_DOMAIN: "example.org" },
    recipient: () => ensureRecoveryKey(key, null),
  });
});
after(() => database.drop());

function folder(name: string): string {
  const path = join(root, name);
  mkdirSync(path);
  return path;
}

test("the recovery key alone opens an archive, which holds database, files, settings and repositories", async () => {
  const packed = await archive.pack(["prj_one", "prj_empty", "prj_broken", "prj_cut"], never);
  assert.deepEqual(
    packed.left_out.map((sentence) => sentence.split(":")[0]),
    ["The repository of prj_broken is left out", "The repository of prj_cut is left out"],
  );
  const bytes = await buffer(packed.content);
  assert.equal(existsSync(dir), false, "nothing readable is left");
  assert.ok(!bytes.includes("sealed") && !bytes.includes("example.org"));
  const out = folder("opened");
  const manifest = await unpackPlatform(Readable.from([bytes]), readIdentity(key.identity), out);
  assert.deepEqual(
    [manifest.taken_at, manifest.settings],
    [packed.taken_at.toISOString(), { BERTH_DOMAIN: "example.org" }],
  );
  const parts = partsIn(out);
  assert.deepEqual(readdirSync(parts.files), ["secrets.key"]);
  assert.equal(readFileSync(bundleOf(parts, "prj_one"), "utf8"), "bundle of prj_one");
  assert.deepEqual(readdirSync(parts.repositories), ["prj_one.bundle"]);
  const listed = await run({ file: pgRestore ?? "", args: ["--list", parts.database] });
  assert.match(listed.stdout, /TABLE public project /);
  const other = await generateX25519Identity();
  await assert.rejects(unpackPlatform(Readable.from([bytes]), other, folder("other")), /identit|match/i);
  for (const wrong of [
    bytes.subarray(0, -20),
    Buffer.concat([bytes.subarray(0, -20), Buffer.alloc(20)]),
    Buffer.from("x"),
  ])
    await assert.rejects(
      unpackPlatform(
        Readable.from([wrong]),
        readIdentity(key.identity),
        folder(`wrong${wrong.length}-${wrong.at(-1)}`),
      ),
    );
});

test("a failure, an end of waiting and a stream that nobody reads on leave nothing behind", async () => {
  await assert.rejects(archive.pack([], AbortSignal.abort(new Error("over"))));
  hasRoom = false;
  await assert.rejects(archive.pack(["prj_one"], never), /no room/);
  hasRoom = true;
  assert.equal(existsSync(dir), false);
  const { content } = await archive.pack(["prj_large"], never);
  content.destroy();
  await new Promise((resolve) => content.once("close", resolve));
  const packing = async () => (await run({ file: "ps", args: ["-o", "comm=", "--ppid", `${process.pid}`] })).stdout;
  await eventually(async () => !/^tar$/m.test(await packing()), "no process of it is left");
  await (await archive.pack([], never)).content.resume().toArray();
  assert.equal(existsSync(dir), false);
});

test("a recovery key stays: its recipient comes back from the identity or from the rows, never as a silent new one", async () => {
  const recipient = await ensureRecoveryKey(key, null);
  assert.match(recipient, /^age1/);
  rmSync(key.recipient);
  assert.equal(await ensureRecoveryKey(key, null), recipient);
  const identity = readFileSync(key.identity, "utf8");
  for (const file of Object.values(key)) rmSync(file);
  assert.equal(await ensureRecoveryKey(key, recipient), recipient);
  assert.equal(existsSync(key.identity), false, "the operator has moved it away");
  writeFileSync(key.identity, identity);
  writeFileSync(join(root, "none"), "nothing\n");
  assert.throws(() => readIdentity(join(root, "none")), /holds no recovery key/);
});

/** Where a restored platform has each part of its data folder from. The compiler asks for a new one: what is made again holds nothing that counts. */
const origins: Readonly<
  Record<keyof ReturnType<typeof pathsIn>, "file" | "dump" | "bundle" | "project" | "made again">
> = {
  ...{ adminToken: "file", keyFile: "file", recoveryRecipient: "file", storageKey: "file", hostKey: "file" },
  ...{ ownPostgres: "dump", repositories: "bundle", databases: "project", storage: "project", backups: "project" },
  // The key that opens the backup comes from elsewhere.
  recoveryKey: "made again",
  ...{ lock: "made again", packing: "made again", restoring: "made again", standby: "made again" },
  ...{ controlCopies: "made again", upgrade: "made again", git: "made again", releases: "made again" },
  ...{ builds: "made again", caches: "made again", compiledCode: "made again", dashboard: "made again" },
  ...{ runtime: "made again", containers: "made again", buildEngine: "made again", outbox: "made again" },
  ...{ sandbox: "made again", edge: "made again", haproxy: "made again", logs: "made again" },
};

test("a backup keeps the files that come from it", () => {
  const paths = pathsIn("/data");
  const wanted = Object.entries(origins).flatMap(([part, origin]) =>
    origin === "file" ? [paths[part as keyof typeof paths]] : [],
  );
  const kept = Object.values(keptFiles({ dataDir: "/data", keyFile: null }));
  assert.deepEqual(
    wanted.filter((path) => !kept.includes(path)),
    [],
  );
});
