import { mkdtempDisposable, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHaproxyEdge, type HaproxyEdge } from "../../src/adapters/edge-haproxy/haproxy-edge.ts";
import { readHaproxyRecord } from "../../src/adapters/edge-haproxy/haproxy-process.ts";
import { start } from "../../src/kit/exec.ts";
import { silentLog } from "../../src/kit/log.ts";
import { runFolder } from "../../src/kit/run-folder.ts";
import { until } from "../../src/kit/until.ts";
import { makeCertificate } from "../../src/ports/edge-stage.suite.ts";
import type { EdgeCertificate, Route } from "../../src/ports/edge.ts";
import { freePort } from "../../test/support/free-port.ts";
import { accepts, answering, load, programPath, startNginx, started, type Started } from "./nginx.ts";
import { secondsOfTree } from "./processor-time.ts";
import { benchSizes, costRow, goalRow, median, rateRow, type BenchRow } from "./row.ts";

// Compares HAProxy as Berth runs it with a bare nginx and a bare HAProxy that only route by host, in front of the same upstream.

const rounds = 3;
const seconds = 3;
const host = "127.0.0.1";
const changes = 40;
const sizes = benchSizes("hosts", [1, 1000, 10_000]);

/** Measures requests to 1, 1,000 and 10,000 hosts by three kinds of connections, and how long a route's change takes. */
export async function measureHaproxy(): Promise<BenchRow[]> {
  await using folder = await mkdtempDisposable(join(tmpdir(), "berth-bench-haproxy-"));
  const dir = folder.path;
  const upstream = await freePort();
  const certificate = await makeCertificate(["*.test", "localhost"]);
  using _served = await startNginx(dir, "upstream", answering(upstream));
  const rows = await Array.fromAsync(sizes, (hosts) => measureHosts({ dir, hosts, upstream, certificate }));
  return rows.flat();
}

interface Subject {
  readonly dir: string;
  readonly hosts: number;
  readonly upstream: number;
  readonly certificate: EdgeCertificate;
}

type Ports = Readonly<Record<"plain" | "tls", number>>;

/** Its process; if it has children, they serve the requests. */
type Rival = Ports & { readonly pid: number };

async function measureHosts(subject: Subject): Promise<BenchRow[]> {
  const { dir, hosts, upstream, certificate } = subject;
  await writeFile(join(dir, "pem"), certificate.key_pem + certificate.chain_pem);
  await writeFile(join(dir, "spread.lua"), spreadScript(hosts));
  const listens = { listenHost: host, listenPort: 0, listenTlsPort: 0 };
  const haproxyBin = programPath("haproxy") as string;
  const stateDir = join(dir, `edge-${hosts}`);
  await using stops = new AsyncDisposableStack();
  const edge = stops.adopt(createHaproxyEdge({ haproxyBin, ...listens, stateDir, log: silentLog }), (each) =>
    each.stop(0),
  );
  await edge.applyCertificates({ version: 1, certificates: [certificate] });
  await edge.apply({ version: 1, routes: routesTo(upstream, hosts), challenge: null });
  const { listen, listen_tls } = await edge.observe();
  const { identity } = readHaproxyRecord(stateDir) as NonNullable<ReturnType<typeof readHaproxyRecord>>;
  const ours = { plain: portOf(listen), tls: portOf(listen_tls), pid: identity.pid };
  const rivals = {
    ours,
    "bare nginx": await startRival(stops, (ports) => startNginx(dir, `nginx-${hosts}`, nginxServers(subject, ports))),
    "bare HAProxy": await startRival(stops, (ports) => startHaproxy(subject, ports)),
  };
  const rows: BenchRow[] = [];
  for (const way of ways) rows.push(...(await compare({ dir, hosts, rivals, way })));
  if (hosts === 1) {
    const folder = join(runFolder(stateDir), "haproxy");
    const uncounted = await startRival(stops, (ports) => startUncounted({ folder, ours }, ports));
    rows.push(...(await compare({ dir, hosts, rivals: { ours, [withoutCounting]: uncounted }, way: "plain" })));
  }
  if (hosts >= 10_000) rows.push(await measureChange(edge, upstream, hosts));
  return rows;
}

const withoutCounting = "the same without counting";

function goalOf(who: string, hosts: number): number {
  if (who === withoutCounting) return 0.9;
  return hosts < 10_000 ? 0.95 : 1;
}

const ways = ["plain", "new", "tls"] as const;
type Way = (typeof ways)[number];
const wayNames = { plain: "kept connections", new: "new connections", tls: "TLS, kept connections" } as const;

interface Comparison {
  readonly dir: string;
  readonly hosts: number;
  readonly rivals: Readonly<Record<string, Rival>>;
  readonly way: Way;
}

/** Compares Berth's edge with each of the others: request rate, and CPU time of a request. */
async function compare({ dir, hosts, rivals, way }: Comparison): Promise<BenchRow[]> {
  const name = `${hosts === 1 ? "1 host" : `${hosts} hosts`}, ${wayNames[way]}`;
  const loads = new Map<string, Awaited<ReturnType<typeof measureLoad>>[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const [who, rival] of Object.entries(rivals))
      loads.set(who, [...(loads.get(who) ?? []), await measureLoad(dir, rival, way)]);
  }
  const rate = (who: string) => median((loads.get(who) ?? []).map((each) => each.perSecond));
  const cost = (who: string) => Math.min(...(loads.get(who) ?? []).map((each) => each.secondsEach));
  const others = Object.keys(rivals).filter((who) => who !== "ours");
  return others.flatMap((who) => {
    const goal = goalOf(who, hosts);
    return [
      rateRow(`HAProxy edge, ${name}`, who, { ours: rate("ours"), theirs: rate(who), goal }),
      costRow(`HAProxy edge, a request, ${name}`, who, { ours: cost("ours"), theirs: cost(who) }),
    ];
  });
}

async function measureLoad(dir: string, { plain, tls, pid }: Rival, way: Way) {
  // wrk sends the server's name (SNI) only when it is not an IP address.
  const url = way === "tls" ? `https://localhost:${tls}/` : `http://${host}:${plain}/`;
  const extra = way === "new" ? ["-H", "Connection: close"] : [];
  const before = secondsOfTree(pid);
  const { perSecond, requests } = await load(url, seconds, "-s", join(dir, "spread.lua"), ...extra);
  return { perSecond, secondsEach: (secondsOfTree(pid) - before) / requests };
}

/** Measures `apply` of one changed route; once it resolves, new requests follow the route. */
async function measureChange(edge: HaproxyEdge, upstream: number, hosts: number): Promise<BenchRow> {
  const routes = routesTo(upstream, hosts);
  const times: number[] = [];
  for (let i = 0; i < changes; i += 1) {
    const at = (i * 97) % hosts;
    const next = routes.with(at, { ...(routes[at] as Route), targets: [{ host, port: 1024 + i }] });
    const startedAtMs = performance.now();
    await edge.apply({ version: 2 + i, routes: next, challenge: null });
    if (i >= changes / 4) times.push(performance.now() - startedAtMs);
  }
  return goalRow(`HAProxy edge, one of ${hosts} routes changes`, median(times), { goal: 50, unit: "ms" });
}

function routesTo(port: number, hosts: number): Route[] {
  return Array.from({ length: hosts }, (_, i) => ({
    ...{ hostname: `host-${i}.test`, project_id: `prj_${i}`, state: "serving" as const },
    ...{ targets: [{ host, port }], https: "on" as const, hsts: false },
  }));
}

function spreadScript(hosts: number): string {
  return `request = function()
  return wrk.format("GET", "/", { ["Host"] = "host-" .. math.random(0, ${hosts - 1}) .. ".test", ["Connection"] = wrk.headers["Connection"] })
end\n`;
}

/** One server block for each host, as is usual with nginx. */
function nginxServers({ dir, hosts, upstream }: Subject, { plain, tls }: Ports): string {
  const proxy = `proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;`;
  // Every host listens for TLS too; otherwise nginx would not look hosts up there.
  const listen = `listen ${host}:${plain}; listen ${host}:${tls} ssl;`;
  const servers = Array.from(
    { length: hosts },
    (_, i) => `server { ${listen} server_name host-${i}.test; location / { ${proxy} } }`,
  );
  const certificate = `ssl_certificate ${dir}/pem; ssl_certificate_key ${dir}/pem;`;
  const sizes = "server_names_hash_max_size 65536; server_names_hash_bucket_size 128;";
  return `${sizes} ${certificate} upstream app { server ${host}:${upstream}; keepalive 256; keepalive_requests 10000000; } ${servers.join("\n")}`;
}

/** One backend for each host in a map, and nothing else. */
async function startHaproxy({ dir, hosts, upstream }: Subject, { plain, tls }: Ports): Promise<Started> {
  const file = join(dir, `bare-${hosts}.cfg`);
  const all = Array.from({ length: hosts }, (_, i) => i);
  await writeFile(join(dir, "bare.map"), all.map((i) => `host-${i}.test b${i}\n`).join(""));
  const backends = all.map((i) => `backend b${i}\n  server s ${host}:${upstream}\n`);
  await writeFile(
    file,
    `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend all
  bind ${host}:${plain}
  bind ${host}:${tls} ssl crt ${dir}/pem alpn h2,http/1.1
  use_backend %[req.hdr(host),lower,map_str(${dir}/bare.map)]
${backends.join("")}`,
  );
  return startedHaproxy(file, plain);
}

/** Starts Berth's own configuration on other ports, without counting. */
async function startUncounted(
  { folder, ours }: { readonly folder: string; readonly ours: Rival },
  { plain, tls }: Ports,
): Promise<Started> {
  const text = (await readFile(join(folder, "haproxy.cfg"), "utf8"))
    .replaceAll(/^.*(?:track-sc0|sc_tracked|sc_inc_gpc|txn\.begun|txn\.took).*\n/gm, "")
    .replaceAll(/use_backend busy if .*/g, "use_backend busy if TRUE")
    .replace("admin.sock", "uncounted.sock")
    .replace(`:${ours.plain}\n`, `:${plain}\n`)
    .replace(`:${ours.tls} ssl`, `:${tls} ssl`);
  const file = join(folder, "uncounted.cfg");
  await writeFile(file, text);
  return startedHaproxy(file, plain);
}

async function startedHaproxy(file: string, port: number): Promise<Started> {
  const child = start({ file: programPath("haproxy") as string, args: ["-f", file] });
  if ((await until(() => accepts(port), { timeoutMs: 60_000 })) === undefined)
    throw new Error(`HAProxy did not start with ${file}.`);
  return started(child);
}

async function startRival(stops: AsyncDisposableStack, starting: (ports: Ports) => Promise<Started>): Promise<Rival> {
  const ports = { plain: await freePort(), tls: await freePort() };
  return { ...ports, pid: stops.use(await starting(ports)).pid };
}

function portOf(listen: string | null): number {
  return Number(listen?.split(":").at(-1));
}
