import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "node:test";
import type { SwarmAttempt } from "../../src/adapters/runtime-swarm/swarm-api.ts";
import { labels } from "../../src/containers/settings.ts";
import { makeCertificate } from "../../src/ports/edge-stage.suite.ts";
import { provideImage } from "../../tools/images/provide-image.ts";
import { startTestEngine, withoutDocker, type TestEngine } from "../support/docker-engine.ts";
import { drawCases, runsAll } from "../support/draw-cases.ts";
import { withoutHaproxy } from "../support/edges.ts";
import { freePort } from "../support/free-port.ts";
import { startMachines, type TestMachine } from "../support/machines.ts";
import { withoutRegistry } from "../support/registry.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { startPlatform, type TestPlatform } from "./platform.ts";
import { hostnameOf, type EdgeAddress } from "./traffic.ts";

/** One combination of runtime and protocol. */
export interface Way {
  readonly runtime: "process" | "docker" | "swarm";
  readonly over: "http" | "https";
}

/** A platform with the address to which tests send visitors' requests. */
export interface VisitedPlatform extends TestPlatform {
  readonly entrance: EdgeAddress;
  /** Whether projects keep the storage that they have by default. */
  readonly storage: boolean;
  /** Returns the ids of deployments with at least one replica. */
  liveWorkloads(): Promise<readonly string[]>;
}

const allWays: readonly Way[] = [
  { runtime: "process", over: "http" },
  // HTTPS depends on the edge alone, so the other runtimes are only tested over HTTP.
  { runtime: "process", over: "https" },
  { runtime: "docker", over: "http" },
  { runtime: "swarm", over: "http" },
];

const nameOf = ({ runtime, over }: Way): string => `${runtime}, over ${over}`;

/** Returns why tests with this combination are skipped, or false. */
export function wayLacks({ runtime }: Way): string | false {
  return withoutHaproxy || (runtime !== "process" && withoutDocker) || (runtime === "swarm" && withoutRegistry);
}

interface Choice {
  /** The combinations that the tests support. */
  readonly possible?: (way: Way) => boolean;
  /** The combinations of which a usual run draws one. */
  readonly usual?: (way: Way) => boolean;
}

/**
 * Returns the combinations that a file tests. A usual run draws one of `usual` that needs no swarm and whose parts are installed.
 * `npm test -- --all` selects all; BERTH_TEST_WAY selects those that contain all of its words, such as `process,https`.
 */
function drawWays(random: () => number, { possible = () => true, usual = () => true }: Choice = {}): readonly Way[] {
  const named = process.env["BERTH_TEST_WAY"]?.split(",") ?? [];
  const ways = allWays.filter((way) => possible(way) && named.every((word) => Object.values(way).includes(word)));
  if (runsAll || named.length > 0) return ways;
  const drawn = ways.filter((way) => way.runtime !== "swarm" && usual(way));
  const ready = drawn.filter((way) => wayLacks(way) === false);
  return drawCases(ready.length > 0 ? ready : drawn, 1, random);
}

/** Describes the same tests for each combination that `drawWays` chooses. */
export function inEachWay(choice: Choice, suite: (way: Way) => void, random = seededRandom()): void {
  for (const way of drawWays(random, choice)) describe(nameOf(way), { skip: wayLacks(way) }, () => suite(way));
}

/** Starts a platform that serves these projects or hostnames; over HTTPS, it uses a certificate of the operator. */
export async function startVisitedPlatform(
  way: Pick<Way, "over"> & Partial<Way>,
  slugs: readonly string[],
  settings: Record<string, string> = {},
): Promise<VisitedPlatform> {
  const engine =
    way.runtime === "docker" ? await startEngine() : way.runtime === "swarm" ? await startSwarm() : undefined;
  const https = way.over === "https" ? await ownCertificate(slugs) : undefined;
  const platform = await startPlatform({
    ...engine?.settings,
    ...https?.settings,
    ...settings,
  }).catch(async (error: unknown) => {
    await engine?.close();
    throw error;
  });
  const { destroy, dataDir } = platform;
  return Object.assign(platform, {
    // A project with storage runs in containers on one machine, which would not test the swarm.
    storage: way.runtime !== "swarm",
    entrance: https === undefined ? platform.edgePort : https.entrance,
    liveWorkloads: async () => engine?.liveWorkloads() ?? readdirSync(join(dataDir, "runtime", "live")),
    async destroy() {
      await destroy();
      await engine?.close();
      https?.remove();
    },
  });
}

async function startEngine() {
  const engine = await startTestEngine();
  const image = await provideImage(engine.socket, "node");
  return {
    settings: { BERTH_RUNTIME: "docker", BERTH_DOCKER_SOCKET: engine.socket, BERTH_BASE_IMAGE: image },
    liveWorkloads: () => workloadsIn(engine),
    close: () => engine.close(),
  };
}

/** Starts a swarm of one machine. */
async function startSwarm() {
  const { machines, close } = await startMachines(1);
  const [engine] = machines as readonly [TestMachine];
  const settings = {
    ...{ BERTH_RUNTIME: "swarm", BERTH_DOCKER_SOCKET: engine.socket },
    BERTH_BASE_IMAGE: await provideImage(engine.socket, "node"),
    BERTH_SWARM_REGISTRY_PORT: String(await freePort()),
  };
  const liveWorkloads = async () => {
    const query = { filters: { label: [`${labels.role}=app`] } };
    const services = await engine.api.call<readonly SwarmAttempt[]>({ path: "/services", query });
    const inServices = services.map(({ Spec: spec }) => spec.Labels[labels.workload] ?? "");
    return [...new Set([...(await workloadsIn(engine)), ...inServices])];
  };
  return { settings, liveWorkloads, close };
}

async function workloadsIn({ api }: TestEngine): Promise<readonly string[]> {
  const filters = { label: [`${labels.role}=app`] };
  const listed = await api.call<readonly { readonly Labels: Readonly<Record<string, string>> }[]>({
    path: "/containers/json",
    query: { all: 1, filters },
  });
  return [...new Set(listed.map(({ Labels }) => Labels[labels.workload] ?? ""))];
}

async function ownCertificate(slugs: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), "berth-certificate-"));
  // Node.js rejects a wildcard directly below a top-level domain.
  const { chain_pem, key_pem } = await makeCertificate(slugs.map(hostnameOf));
  writeFileSync(join(folder, "pem"), chain_pem + key_pem, { mode: 0o600 });
  const port = await freePort();
  return {
    settings: { BERTH_EDGE_TLS_PORT: `${port}`, BERTH_CERTIFICATE_FILES: join(folder, "pem") },
    entrance: { port, ca: [chain_pem] },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
