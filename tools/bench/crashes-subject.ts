// Runs in a network namespace that stands for the machine: an edge, visitors, and one application whose replicas are killed repeatedly.
import { mkdirSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { testParts } from "../../src/sandbox/test-parts.ts";
import { startDetached } from "../../src/kit/exec.ts";
import { createSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { createTestEdge } from "../../test/support/edges.ts";

/** What visitors received while replicas were killed. */
export interface CrashCounts {
  readonly kills: number;
  readonly requests: number;
  /** Responses of the application, of the edge (502, 504), and of anything else. */
  readonly own: number;
  readonly refused: number;
  readonly strange: number;
}

const hostname = "app.example.test";
const replicas = 3;
const visitors = 8;
/** How long after the crash the edge gets the new routes: longer than in the platform. */
const edgeLateMs = 300;
const server = `require("node:http").createServer((q, r) => r.end("own")).listen(Number(process.env.PORT), "0.0.0.0")`;

async function main(folder: string, kills: number): Promise<CrashCounts> {
  const app = join(folder, "app");
  mkdirSync(app);
  writeFileSync(join(app, "server.js"), server);
  const parts = testParts();
  const sandbox = await createSandbox({ parts, stateDir: join(folder, "sandbox"), nodeBin: process.execPath });
  const edge = createTestEdge({ stateDir: join(folder, "edge") });
  const fleet = new Map<string, { readonly host: string; readonly port: number }>();
  let version = 0;
  const sync = () => {
    const plain = { state: "serving", https: "off", hsts: false } as const;
    const route = { hostname, project_id: "prj_crashes", targets: [...fleet.values()], ...plain };
    return edge.apply({ version: (version += 1), routes: [route], challenge: null });
  };
  let count = 0;
  const begin = async () => {
    const id = `run-crash${(count += 1)}`;
    fleet.set(id, await startReplica(sandbox, { id, app, log: join(folder, "output") }));
  };
  try {
    for (let each = 0; each < replicas; each += 1) await begin();
    await sync();
    const visits = visitFrom(Number((await edge.observe()).listen?.split(":").at(-1)));
    for (let kill = 0; kill < kills; kill += 1) {
      const [id] = fleet.keys();
      // Removes the process, its network and its address at once, as a crash of a careless runtime would.
      sandbox.kill(id as string);
      await sandbox.remove(id as string);
      fleet.delete(id as string);
      await Promise.all([begin(), sleep(edgeLateMs)]);
      await sync();
    }
    return { kills, ...(await visits.end()) };
  } finally {
    await edge.stop(0);
    await sandbox.sweep("run", []);
    await sandbox.dismantle();
  }
}

async function startReplica(sandbox: Sandbox, { id, app, log }: { id: string; app: string; log: string }) {
  const network = { kind: "serve", port: 3000, reach: [] } as const;
  const place = { app: { source: app, access: "private" }, storageDir: null, binds: [] } as const;
  const spec = { id, uid: 29_500, argv: ["node", "server.js"], env: {}, ...place, network, limits: null };
  const { command, options, address, close } = await sandbox.command(spec);
  await startDetached(command, log, options).finally(close);
  if (address === null) throw new Error("the replica has no address");
  return address;
}

/** Starts a visitor that sends one request after the other until `end`. */
function visitFrom(port: number) {
  const counts = { requests: 0, own: 0, refused: 0, strange: 0 };
  let isOver = false;
  const visit = async () => {
    while (!isOver) {
      const { status, body } = await ask(port);
      counts.requests += 1;
      if (body === "own") counts.own += 1;
      else if (status === 502 || status === 504) counts.refused += 1;
      else counts.strange += 1;
    }
  };
  const all = Promise.all(Array.from({ length: visitors }, visit));
  return {
    async end() {
      isOver = true;
      await all;
      return counts;
    },
  };
}

function ask(port: number): Promise<{ status: number; body: string }> {
  return new Promise((resolve) => {
    const request = get({ host: "127.0.0.1", port, headers: { host: hostname, cookie: "secret=1" }, timeout: 5000 });
    request.once("error", () => resolve({ status: 502, body: "" }));
    request.once("timeout", () => request.destroy());
    request.once("response", (response) => {
      let body = "";
      response.on("data", (chunk) => (body += String(chunk)));
      response.once("close", () => resolve({ status: response.statusCode ?? 0, body }));
    });
  });
}

if (import.meta.main) {
  const [folder = "", kills = "0"] = process.argv.slice(2);
  const counts = await main(folder, Number(kills));
  process.stdout.write(`${JSON.stringify(counts)}\n`, () => process.exit());
}
