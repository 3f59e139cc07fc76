// Drawn with other S3 files: every run tests the same rules on the disk storage, which is away for a moment.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { send } from "../../src/adapters/storage-s3/requests.ts";
import { createS3Storage } from "../../src/adapters/storage-s3/s3-storage.ts";
import { openChains } from "../../src/features/backups/backups.ts";
import { archivesTask } from "../../src/reconcile/archives/archives-task.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import { drawCases } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { missingForSwift, startSwift, type SwiftServer } from "../support/swift.ts";

interface Archive {
  readonly status: string;
  readonly reason: string | null;
  readonly windows: readonly { readonly from: string; readonly to: string }[];
  readonly gaps: readonly { readonly reason: string }[];
}

type State = "open" | "refused" | "silent";

/** Passes connections on, ends them, or lets them wait for an answer that never comes. */
async function startRelay(target: number) {
  let state: State = "open";
  const sockets = new Set<Socket>();
  const server = createServer((from) => {
    sockets.add(from.on("error", () => {}).on("close", () => sockets.delete(from)));
    if (state === "refused") return void from.destroy();
    if (state === "silent") return void from.resume();
    const to = connect(target, "127.0.0.1").on("error", () => from.destroy());
    from.pipe(to).pipe(from);
    from.on("close", () => to.destroy());
    to.on("close", () => from.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const drop = () => sockets.forEach((socket) => socket.destroy());
  return {
    port: (server.address() as AddressInfo).port,
    turn(to: State) {
      state = to;
      if (to !== "open") drop();
    },
    close() {
      drop();
      server.close();
    },
  };
}

/** A part of the log of 50 MiB that takes little room in the storage. */
const fill =
  "select pg_logical_emit_message(false, 'test', repeat(md5(random()::text), 32768)) from generate_series(1, 50)";

const whichever = drawCases(["refused", "silent"] as const, 1);

describe("an object storage that is away too long", { skip: missingPart || missingForSwift }, () => {
  let server: SwiftServer;
  let relay: Awaited<ReturnType<typeof startRelay>>;
  let running: BackupPlatform;
  let ended: Promise<void> | undefined;
  let project: TestProject;

  before(async () => {
    server = await startSwift();
    await send({ ...server, bucket: "outage" }, { method: "PUT" });
    relay = await startRelay(Number(new URL(server.endpoint).port));
    const endpoint = `http://127.0.0.1:${relay.port}`;
    const storage = () => createS3Storage({ ...server, endpoint, bucket: "outage", prefix: "" });
    running = await startBackupPlatform({ storage });
    const { settings } = running.platform;
    const often = { ...settings, backups: { ...settings.backups, archiveEveryMs: 1000 } };
    await running.startTask(() => archivesTask({ ...running.platform, settings: often }));
    project = await running.project();
    await eventually(async () => (await archive()).status === "healthy", "the first copy is made");
  });
  after(async () => {
    await (ended ?? running?.close());
    relay?.close();
    await server?.close();
  });

  const archive = async () =>
    (await running.call("GET", `/v1/projects/${project.slug}/database/archive`)).body as unknown as Archive;

  const openChain = async () =>
    (await openChains(running.platform.db)).find(({ project_id }) => project_id === project.id)?.id;

  const whenDrawn = (how: State) => ({ skip: !whichever.some((each) => each === how) && `not drawn: ${how}` });

  it("leaves a gap by name and gets a new copy within ten minutes after it is back", whenDrawn("refused"), async () => {
    const [{ windows }, chain] = [await archive(), await openChain()];
    relay.turn("refused");
    await project.query(fill);
    const reason = await eventually(async () => (await archive()).reason, "the archive is behind");
    assert.match(reason, /could not be stored/);
    await eventually(async () => {
      await project.query(fill);
      const [slot] = await project.query("select wal_status from pg_replication_slots");
      return slot?.["wal_status"] === "lost" || (await openChain()) !== chain;
    }, "the log is dropped");
    relay.turn("open");
    const isCopied = async () => {
      const seen = await archive();
      // Only a copy makes it healthy after a gap.
      if (seen.windows.length === windows.length) assert.notEqual(seen.status, "healthy");
      return seen.status === "healthy" && seen;
    };
    const found = await eventually(isCopied, "the archive is healthy", 600_000);
    assert.equal(found.windows.length, windows.length + 1);
    assert.match(found.gaps.at(-1)?.reason ?? "", /had to drop it/);
  });

  it(
    "is noticed after a minute when it answers nothing, and a platform that waits for it ends",
    whenDrawn("silent"),
    async () => {
      relay.turn("silent");
      await project.query(fill);
      const reason = await eventually(async () => (await archive()).reason, "the archive is behind");
      assert.match(reason, /more than a minute, or does not answer/);
      await (ended = running.close());
    },
  );
});
