// Drawn with other S3 files: every run tests the same rules on the disk storage.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { generateX25519Identity, identityToRecipient } from "age-encryption";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { createAgeStorage } from "../../src/adapters/storage-age/age-storage.ts";
import { send } from "../../src/adapters/storage-s3/requests.ts";
import { createS3Storage } from "../../src/adapters/storage-s3/s3-storage.ts";
import { runOk } from "../../src/kit/exec.ts";
import type { Storage } from "../../src/ports/storage.ts";
import { archivesTask } from "../../src/reconcile/archives/archives-task.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import { drawCases } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { missingForSwift, startSwift, type SwiftServer } from "../support/swift.ts";

const lacksAge = !existsSync("/usr/bin/age") && "the program age is not installed";

interface Evidence {
  readonly tables: readonly { readonly rows: number; readonly live_rows: number | null }[];
  readonly copy: { readonly key: string; readonly sha256: string };
  readonly log: { readonly first: string; readonly segments: number; readonly sha256: string };
}

/** Reads the objects' checksums without Berth: `age` opens them, `zstd` unpacks the log, `sha256sum` adds up. */
const program = `set -eu -o pipefail
cd "$1"; key="$2"; what="$3"; shift 3
for file in "$@"; do
  if [ "$what" = log ]; then age --decrypt --identity "$key" "$file" | zstd -dc; else age --decrypt --identity "$key" "$file"; fi
done | sha256sum | cut -d ' ' -f 1`;

describe("a drill from S3", { skip: missingPart || missingForSwift || lacksAge }, () => {
  const random = seededRandom();
  let server: SwiftServer;
  let running: BackupPlatform;
  let project: TestProject;
  let objects: Storage;
  let dir = "";
  const stored = new Set<string>();
  let rows = 0;

  before(async () => {
    server = await startSwift();
    await send({ ...server, bucket: "drills" }, { method: "PUT" });
    dir = await mkdtemp(join(tmpdir(), "berth-drills-"));
    const identity = await generateX25519Identity();
    const recipients = [await identityToRecipient(identity)];
    await writeFile(join(dir, "recovery.key"), identity);
    objects = createS3Storage({ ...server, bucket: "drills", prefix: "" });
    const noted = {
      ...objects,
      put: (key: string, ...rest: [Readable]) => (stored.add(key), objects.put(key, ...rest)),
    };
    const age = { recipients: async () => recipients, identities: () => [identity], isPlain: () => false };
    running = await startBackupPlatform({ storage: () => createAgeStorage({ storage: noted, ...age }) });
    await running.startTask(() => archivesTask(running.platform));
    project = await running.project();
    await project.query("create table notes (id int generated always as identity primary key, body text)");
    await eventually(async () => {
      await running.platform.wakeups.send(running.platform.db, "archives");
      const { windows } = (await running.call("GET", `/v1/projects/${project.slug}/database/archive`)).body;
      return (windows as unknown[]).length > 0;
    }, "the first copy is made");
  });
  after(async () => {
    await running?.close();
    await server?.close();
    await rm(dir, { recursive: true, force: true });
  });

  async function drill() {
    const { status, body, text } = await running.call("POST", `/v1/projects/${project.slug}/drills`);
    assert.equal(status, 201, text);
    return body as { status: string; evidence: Evidence };
  }

  const segmentsOf = ({ copy, log }: Evidence) => {
    const folder = copy.key.split("/").slice(0, -1).join("/");
    const all = [...stored]
      .filter((key) => key.startsWith(`${folder}/`) && /\/[0-9A-F]{24}\.zst$/.test(key))
      .toSorted();
    const first = all.indexOf(`${folder}/${log.first}.zst`);
    return all.slice(first, first + log.segments);
  };

  async function sumOf(what: "copy" | "log", keys: readonly string[]): Promise<string> {
    const names = keys.map((key) => key.replaceAll("/", "+"));
    for (const [index, key] of keys.entries())
      await writeFile(join(dir, names[index] as string), await buffer(await objects.open(key)));
    const args = ["-c", program, "sh", dir, join(dir, "recovery.key"), what, ...names];
    return (await runOk({ file: "/bin/bash", args })).stdout.trim();
  }

  const drills = Array.from({ length: 10 }, (_, index) => index + 1);
  for (const number of drawCases(drills, 1))
    it(`passes, and other programs find what its evidence says (${number})`, async () => {
      await project.query("insert into notes (body) select md5(random()::text) from generate_series(1, 5000)");
      rows += 5000;
      const { status, evidence } = await drill();
      assert.equal(status, "passed");
      assert.deepEqual(
        evidence.tables.map(({ rows, live_rows }) => [rows, live_rows]),
        [[rows, rows]],
      );
      assert.equal(await sumOf("copy", [evidence.copy.key]), evidence.copy.sha256);
      assert.equal(await sumOf("log", segmentsOf(evidence)), evidence.log.sha256);
    });

  const flips = Array.from({ length: 20 }, (_, index) => index + 1);
  for (const number of drawCases(flips, 2))
    it(`finds a flipped byte anywhere in what it needs (${number})`, async () => {
      await eventually(async () => {
        const { body } = await running.call("GET", `/v1/projects/${project.slug}/database/archive`);
        return body["status"] === "healthy";
      }, "there is a copy after what was damaged before");
      const { evidence } = await drill();
      // The newest segment is stored again by the next drill.
      const needed = [evidence.copy.key, ...segmentsOf(evidence).slice(0, -1)];
      const key = needed[Math.floor(random() * needed.length)] as string;
      const whole = await buffer(await objects.open(key));
      const flipped = Buffer.from(whole);
      const at = Math.floor(random() * whole.length);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << Math.floor(random() * 8));
      await objects.put(key, Readable.from([flipped]));
      assert.equal((await drill()).status, "failed", `byte ${at} of ${key}`);
    });
});
