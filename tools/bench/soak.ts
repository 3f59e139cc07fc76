import { mkdtempDisposable, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { send } from "../../src/adapters/storage-s3/requests.ts";
import type { Result } from "../../src/contract/routes.ts";
import { createApp, startPlatform, type TestPlatform } from "../../test/e2e/platform.ts";
import { eventually } from "../../test/support/eventually.ts";
import { ledgerTable, startLedger, wrongAt, type Ledger } from "../../test/support/ledger.ts";
import { startSwift, type SwiftServer } from "../../test/support/swift.ts";
import { benchSize, countRow, type BenchRow } from "./row.ts";

interface Database {
  readonly slug: string;
  readonly url: string;
  readonly ledger: Ledger;
}

type Archive = Result<"backups.archive">;

const bucket = "soak";

/**
 * Lets databases write for `minutes` while the S3 server of their archives is away twice, for a tenth of the time each, and the control
 * plane is killed `kills` times. Then restores each database to the end of each of its windows and to a random moment in it, and counts the
 * acknowledged commits that are neither there nor in a gap that the archive names.
 */
export async function measureSoak(): Promise<readonly BenchRow[]> {
  const [minutes, databases, kills] = [benchSize("minutes", 120), benchSize("databases", 20), benchSize("kills", 100)];
  await using server = await startSwift();
  await using folder = await mkdtempDisposable(join(tmpdir(), "berth-soak-"));
  using door = await openDoor(Number(new URL(server.endpoint).port));
  await using platform = await startPlatform(await settingsOf(server, door.port, folder.path));
  await using ledgers = new AsyncDisposableStack();
  const all: Database[] = [];
  ledgers.defer(async () => void (await Promise.all(all.map(({ ledger }) => ledger.stop()))));
  for (let each = 1; each <= databases; each += 1) all.push(await startDatabase(platform, `soak-${each}`));
  say(`${databases} databases write`);
  await disturb({ platform, door, flooded: all[0] as Database }, { minutes, kills });
  const commits = await Promise.all(all.map(({ ledger }) => ledger.stop()));
  const seen = await Array.fromAsync(all, (database) => examine(platform, database));
  const sum = (of: keyof Seen) => seen.reduce((total, each) => total + each[of], 0);
  say(`${sum("gaps")} gaps hold ${sum("inGaps")} commits; ${sum("moments")} moments restored`);
  const total = commits.reduce((all, each) => all + each, 0).toLocaleString("en");
  const over = `${total} acknowledged commits in ${minutes} minutes, ${kills} kills`;
  return [
    countRow("neither restorable nor in a named gap", over, sum("lost")),
    countRow("shown before they were committed", over, sum("early")),
  ];
}

const say = (text: string) => process.stdout.write(`  ${new Date().toISOString()} ${text}\n`);

/** A port through which the platform reaches the S3 server, while it is open. */
async function openDoor(to: number) {
  let isOpen = true;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    if (!isOpen) return void near.destroy();
    const far = connect(to, "127.0.0.1");
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => (sockets.delete(socket), other.destroy()));
    }
    near.pipe(far).pipe(near);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    set(open: boolean) {
      isOpen = open;
      if (!open) for (const socket of sockets) socket.destroy();
    },
    [Symbol.dispose]: () => void server.close(),
  };
}

async function settingsOf(server: SwiftServer, port: number, dir: string): Promise<Record<string, string>> {
  await send({ ...server, bucket }, { method: "PUT" });
  const secretKeyFile = join(dir, "secret");
  await writeFile(secretKeyFile, server.secretKey, { mode: 0o600 });
  return {
    BERTH_S3_URL: `http://${encodeURIComponent(server.accessKeyId)}@127.0.0.1:${port}/${bucket}/berth/?region=${server.region}`,
    BERTH_S3_SECRET_KEY_FILE: secretKeyFile,
    BERTH_ON_STOP: "keep",
  };
}

const app = {
  "package.json": JSON.stringify({ name: "soak", private: true }),
  Procfile: "web: node server.js\n",
  "server.js": `require("node:http").createServer((_, response) => response.end(process.env.DATABASE_URL)).listen(process.env.PORT, process.env.HOST);\n`,
};

/** Creates a project with a database, and starts writing once any moment of it can be restored. */
async function startDatabase(platform: TestPlatform, slug: string): Promise<Database> {
  const repository = await createApp(platform, slug, app);
  await call(platform, "POST", `/v1/projects/${slug}/database`);
  const { exitCode, stderr } = await repository.push();
  if (exitCode !== 0) throw new Error(stderr);
  const { body: url } = await platform.visit(slug);
  const connectTo = () => login(url);
  const client = await connectTo();
  await client.query(ledgerTable);
  await client.end();
  await eventually(async () => (await archiveOf(platform, slug)).windows.length > 0, `${slug} has its first copy`);
  return { slug, url, ledger: startLedger(connectTo, { writers: 1, pauseMs: 1000 }) };
}

async function login(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  client.on("error", () => {});
  await client.connect();
  return client;
}

async function call<T>(platform: TestPlatform, method: string, path: string, wanted?: unknown): Promise<T> {
  const { status, body } = await platform.call<T>(method, path, wanted);
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`);
  return body;
}

const archiveOf = (platform: TestPlatform, slug: string) =>
  call<Archive>(platform, "GET", `/v1/projects/${slug}/database/archive`);

interface Disturbed {
  readonly platform: TestPlatform;
  readonly door: { readonly set: (open: boolean) => void };
  readonly flooded: Database;
}

/** Kills the control plane at random instants, closes the door twice; the second time, one database logs more than is kept. */
async function disturb(
  { platform, door, flooded }: Disturbed,
  { minutes, kills }: { readonly minutes: number; readonly kills: number },
): Promise<void> {
  const [startMs, lengthMs] = [Date.now(), minutes * 60_000];
  const acts = Array.from({ length: kills }, () => ({ part: Math.random(), act: () => kill(platform) }));
  const move = async (isOpen: boolean) => {
    door.set(isOpen);
    say(`the store is ${isOpen ? "back" : "away"}`);
  };
  for (const part of [0.2, 0.6])
    acts.push({ part, act: () => move(false) }, { part: part + 0.1, act: () => move(true) });
  acts.push({ part: 0.65, act: () => flood(flooded) });
  for (const { part, act } of acts.toSorted((a, b) => a.part - b.part)) {
    await sleep(Math.max(0, startMs + part * lengthMs - Date.now()));
    await act();
  }
  await sleep(Math.max(0, startMs + lengthMs - Date.now()));
}

/** A start that ends is repeated, as systemd does. */
async function kill(platform: TestPlatform): Promise<void> {
  await platform.end("SIGKILL");
  for (let tries = 1; ; tries += 1)
    try {
      return await platform.restart();
    } catch (error) {
      say(`a start ended: ${(error as Error).message}`);
      if (tries === 5) throw error;
    }
}

async function flood({ slug, url }: Database): Promise<void> {
  const client = await login(url);
  await client.query("create table flood as select md5(i::text) from generate_series(1, 8000000) i");
  await client.query("drop table flood");
  await client.end();
  say(`${slug} has written much`);
}

interface Seen {
  readonly lost: number;
  readonly early: number;
  readonly inGaps: number;
  readonly gaps: number;
  readonly moments: number;
}

async function examine(platform: TestPlatform, { slug, url, ledger }: Database): Promise<Seen> {
  const endMs = Date.now();
  const { windows, gaps } = await eventually(async () => {
    const archive = await archiveOf(platform, slug);
    return archive.status === "healthy" && Date.parse(archive.windows.at(-1)?.to ?? "") > endMs && archive;
  }, `the log of ${slug} is stored`);
  const isIn = (
    spans: readonly Pick<Archive["gaps"][number], "from" | "to">[],
    { begunMs, ackedMs }: { begunMs: number; ackedMs: number | null },
  ) => ackedMs !== null && spans.some(({ from, to }) => begunMs <= Date.parse(to) && ackedMs >= Date.parse(from));
  const inGaps = new Set([...ledger.commits].filter(([, commit]) => isIn(gaps, commit)).map(([id]) => id));
  let [lost, early] = [0, 0];
  const moments = windows.flatMap(({ from, to }) => [to, between(from, to)]);
  for (const at of moments) {
    const { database } = await call<{ database: string }>(platform, "POST", `/v1/projects/${slug}/restore`, { at });
    const wrong = wrongAt(ledger, await idsIn(url, database), Date.parse(at));
    lost += wrong.lacking.length;
    early += wrong.early.length;
    await call(platform, "DELETE", `/v1/projects/${slug}/database/restored/${database}`);
  }
  // What was committed after the last moment of all windows is lost unless a gap names it.
  const lastMs = Date.parse(windows.at(-1)?.to ?? "");
  lost += [...ledger.commits.values()].filter(({ ackedMs }) => ackedMs !== null && ackedMs >= lastMs).length;
  return { lost, early, inGaps: inGaps.size, gaps: gaps.length, moments: moments.length };
}

const between = (from: string, to: string) =>
  new Date(Date.parse(from) + Math.floor(Math.random() * (Date.parse(to) - Date.parse(from)))).toISOString();

async function idsIn(url: string, database: string): Promise<ReadonlySet<number>> {
  const client = await login(Object.assign(new URL(url), { pathname: `/${database}` }).href);
  const { rows } = await client.query<{ id: number }>("select id from ledger");
  await client.end();
  return new Set(rows.map(({ id }) => id));
}
