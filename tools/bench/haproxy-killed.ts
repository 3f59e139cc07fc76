import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { awaitEdges } from "../../src/features/routes/routes.ts";
import { mapWithConcurrency } from "../../src/kit/map-with-concurrency.ts";
import { until } from "../../src/kit/until.ts";
import { makeCertificate } from "../../src/ports/edge-stage.suite.ts";
import { startPlatform } from "../../test/e2e/platform.ts";
import { ask, startTraffic, type EdgeAddress } from "../../test/e2e/traffic.ts";
import { edgePid, servingPid, withoutHaproxy } from "../../test/support/edges.ts";
import { freePort } from "../../test/support/free-port.ts";
import { startGrownPlatform, type GrownPlatform } from "./grown-platform.ts";
import { countRow, median, timeRow, type BenchRow } from "./row.ts";
import { addProjects, addedHostname } from "./scale-rows.ts";
import { benchSizes } from "./size.ts";

const sizes = benchSizes("hosts", [1, 1000]);
const kills = 3;
const perSecond = 20;
const goalMs = 2000;
const backWithinMs = 60_000;
const confirmMs = 600_000;

/** Returns what the machine lacks for `measureKilledHaproxy`, as a sentence; undefined if nothing. */
export function haproxyKilledLacks(): string | undefined {
  return withoutHaproxy === false ? undefined : `A killed HAProxy is not measured: ${withoutHaproxy}.`;
}

/**
 * Measures the time from `kill -9` of HAProxy's worker, and of its main process, to the next response over HTTPS, with 1 and 1,000 hosts
 * that have one certificate each.
 */
export async function measureKilledHaproxy(): Promise<BenchRow[]> {
  const certificate = await makeCertificate(["*.apps.test"]);
  const edge = { port: await freePort(), ca: [certificate.chain_pem] };
  const app = createServer((_request, response) => void response.end("fine")).listen(0, "127.0.0.1");
  await once(app, "listening");
  const folder = await mkdtemp(join(tmpdir(), "berth-bench-certificate-"));
  // A certificate of the operator's: without one, and without an authority, the platform does not listen for HTTPS.
  const file = join(folder, "own.pem");
  await writeFile(file, `${certificate.chain_pem}\n${certificate.key_pem}`, { mode: 0o600 });
  const settings = { BERTH_EDGE_TLS_PORT: `${edge.port}`, BERTH_CERTIFICATE_FILES: file };
  const grown = await startGrownPlatform(() => startPlatform(settings));
  try {
    const rows: BenchRow[] = [];
    let added = 0;
    for (const hosts of sizes) {
      await addProjects({ ...grown, machine: "elsewhere" }, added + 1, hosts, certificate);
      added = hosts;
      await lead(grown, (app.address() as AddressInfo).port);
      rows.push(...(await measureKills(grown, edge, hosts)));
    }
    return rows;
  } finally {
    await grown.close();
    await rm(folder, { recursive: true, force: true });
    app.close();
    app.closeAllConnections();
  }
}

/** Routes the added hosts to this process, and waits until the edge serves them with every certificate. */
async function lead({ db, wakeups }: GrownPlatform, port: number): Promise<void> {
  await sql`update replica set host = '127.0.0.1', port = ${port} where machine = 'elsewhere'`.execute(db);
  for (const version of ["route_version", "certificate_version"] as const) {
    // While an edge loads a thousand certificates it reports nothing, so it counts as dead.
    const isConfirmed = async () => {
      const state = await awaitEdges({ db, wakeups }, { timeoutMs: confirmMs, of: version });
      return state === "confirmed" ? true : undefined;
    };
    if ((await until(isConfirmed, { timeoutMs: confirmMs })) === undefined)
      throw new Error("The edge did not confirm its hosts.");
  }
}

async function measureKills({ platform }: GrownPlatform, edge: EdgeAddress, hosts: number): Promise<BenchRow[]> {
  const stateDir = join(platform.dataDir, "haproxy");
  const names = Array.from({ length: hosts }, (_, i) => addedHostname(i + 1));
  const rows: BenchRow[] = [];
  let unanswered = 0;
  for (const [what, pidOf] of [
    ["worker", () => servingPid(stateDir)],
    ["main process", () => edgePid(stateDir)],
  ] as const) {
    const times: number[] = [];
    for (let kill = 0; kill < kills; kill += 1) {
      await answers(edge, names[0] as string);
      const traffic = startTraffic(edge, names.slice(0, perSecond), perSecond);
      const [master, pid] = [edgePid(stateDir), pidOf()];
      const killedAtMs = performance.now();
      process.kill(pid, "SIGKILL");
      await isReplaced(stateDir, master);
      await answers(edge, names[0] as string);
      times.push(performance.now() - killedAtMs);
      await traffic.stop();
      await mapWithConcurrency(names, 8, async (name) => {
        if ((await ask(edge, name, "/")).status !== 200) unanswered += 1;
      });
    }
    rows.push(
      timeRow(`HAProxy's ${what} is killed, ${hosts} hosts with certificates, until HTTPS answers`, "the goal of 2 s", {
        ...{ ours: median(times), theirs: goalMs, goal: 1 },
      }),
    );
  }
  return [...rows, countRow("hosts did not answer over HTTPS then", `${kills * 2 * hosts}`, unanswered)];
}

/** The main process ends with a killed worker; a killed main process leaves its worker for a moment. */
async function isReplaced(stateDir: string, master: number): Promise<void> {
  const replaced = () => (edgePid(stateDir) === master ? undefined : true);
  if ((await until(replaced, { timeoutMs: backWithinMs, atMostMs: 20 })) === undefined)
    throw new Error("HAProxy was not started again.");
}

async function answers(edge: EdgeAddress, name: string): Promise<void> {
  const isBack = async () => ((await ask(edge, name, "/")).status === 200 ? true : undefined);
  if ((await until(isBack, { timeoutMs: backWithinMs, atMostMs: 20 })) === undefined)
    throw new Error(`${name} does not answer over HTTPS.`);
}
