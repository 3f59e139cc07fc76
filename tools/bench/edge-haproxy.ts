import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHaproxyEdge, type HaproxyEdge } from "../../src/adapters/edge-haproxy/haproxy-edge.ts";
import { readHaproxyRecord } from "../../src/adapters/edge-haproxy/haproxy-process.ts";
import { runOk, start } from "../../src/kit/exec.ts";
import { silentLog } from "../../src/kit/log.ts";
import { runFolder } from "../../src/kit/run-folder.ts";
import { until } from "../../src/kit/until.ts";
import { makeCertificate } from "../../src/ports/edge-stage.suite.ts";
import type { EdgeCertificate, Route } from "../../src/ports/edge.ts";
import { accepts, answering, freePort, programPath, startNginx, stopOf, type Stop } from "./nginx.ts";
import { secondsOfTree } from "./processor-time.ts";
import { benchSizes, costRow, median, rateRow, timeRow, type BenchRow } from "./row.ts";

// Compares HAProxy as Berth runs it with a bare nginx and a bare HAProxy that only route by host, in front of the same upstream.

const rounds = 3;
const seconds = 3;
const connections = 64;
const host = "127.0.0.1";
const changes = 40;
const sizes = benchSizes("hosts", [1, 1000, 10_000]);

/** Returns what the machine lacks for `measureHaproxy`, as a sentence; undefined if nothing. */
export function haproxyBenchLacks(): string | undefined {
  const missing = ["haproxy", "nginx", "wrk"].filter((name) => programPath(name) === undefined);
  return missing.length === 0 ? undefined : `HAProxy is not measured: ${missing.join(" and ")} not installed.`;
}

/**
 * Measures requests to 1, 1,000 and 10,000 hosts over kept connections, new connections and TLS, and how long a route's change takes with
 * 10,000 hosts.
 */
export async function measureHaproxy(): Promise<BenchRow[]> {
  const dir = await mkdtemp(join(tmpdir(), "berth-bench-haproxy-"));
  const upstream = await freePort();
  const certificate = await makeCertificate(["*.test", "localhost"]);
  const stops = [await startNginx(dir, "upstream", answering(upstream))];
  try {
    const rows: BenchRow[] = [];
    for (const hosts of sizes) rows.push(...(await measureHosts({ dir, hosts, upstream, certificate })));
    return rows;
  } finally {
    for (const stop of stops) stop();
    await rm(dir, { recursive: true, force: true });
  }
}

interface Subject {
  readonly dir: string;
  readonly hosts: number;
  readonly upstream: number;
  readonly certificate: EdgeCertificate;
}

interface Ports {
  readonly plain: number;
  readonly tls: number;
}

interface Rival extends Ports {
  /** The process; if it has children, they serve the requests. */
  readonly pid: number;
}

async function measureHosts(subject: Subject): Promise<BenchRow[]> {
  const { dir, hosts, upstream, certificate } = subject;
  await writeFile(join(dir, "pem"), certificate.key_pem + certificate.chain_pem);
  await writeFile(join(dir, "spread.lua"), spreadScript(hosts));
  const listens = { listenHost: host, listenPort: 0, listenTlsPort: 0 };
  const haproxyBin = programPath("haproxy") as string;
  const stateDir = join(dir, `edge-${hosts}`);
  const edge = createHaproxyEdge({ haproxyBin, ...listens, stateDir, log: silentLog });
  const [nginx, bare] = [await freePorts(), await freePorts()];
  const stops: Stop[] = [];
  const run = async (stop: Promise<Stop>) => ({ pid: stops[stops.push(await stop) - 1]?.pid ?? 0 });
  try {
    await edge.applyCertificates({ version: 1, certificates: [certificate] });
    await edge.apply({ version: 1, routes: routesTo(upstream, hosts), challenge: null });
    const { listen, listen_tls } = await edge.observe();
    const { identity } = readHaproxyRecord(stateDir) as NonNullable<ReturnType<typeof readHaproxyRecord>>;
    const ours = { plain: portOf(listen), tls: portOf(listen_tls), pid: identity.pid };
    const rivals = {
      ours,
      "bare nginx": { ...nginx, ...(await run(startNginx(dir, `nginx-${hosts}`, nginxServers(subject, nginx)))) },
      "bare HAProxy": { ...bare, ...(await run(startHaproxy(subject, bare))) },
    };
    const rows: BenchRow[] = [];
    for (const way of ways) rows.push(...(await compare({ dir, hosts, rivals, way })));
    if (hosts === 1) rows.push(...(await compareVariants(subject, { ours, folder: runFolder(stateDir), stops })));
    if (hosts >= 10_000) rows.push(await measureChange(edge, upstream, hosts));
    return rows;
  } finally {
    for (const stop of stops) stop();
    await edge.stop(0);
  }
}

interface Running {
  readonly ours: Rival;
  /** The folder with HAProxy's configuration. */
  readonly folder: string;
  readonly stops: Stop[];
}

/** Compares Berth's edge with what shows where its time goes: the same without counting or with one thread, and nginx with more work. */
async function compareVariants(subject: Subject, { ours, folder, stops }: Running): Promise<BenchRow[]> {
  const { dir, hosts } = subject;
  const run = async (starting: (ports: Ports) => Promise<Stop>): Promise<Rival> => {
    const ports = await freePorts();
    const stop = await starting(ports);
    stops.push(stop);
    return { ...ports, pid: stop.pid };
  };
  const rivals = {
    ours,
    [sameFields]: await run((ports) =>
      startNginx(dir, "nginx-forwarding", nginxServers(subject, ports, forwardingFields)),
    ),
    [withoutCounting]: await run((ports) => startChanged({ folder, ours, name: "uncounted" }, ports, withoutCounts)),
    [withOneThread]: await run((ports) => startChanged({ folder, ours, name: "one-thread" }, ports, inOneThread)),
    [bareWithOneThread]: await run((ports) => startHaproxy(subject, ports, 1)),
  };
  return compare({ dir, hosts, rivals, way: "plain" });
}

const withoutCounting = "the same without counting";
const withOneThread = "the same with one thread";
const bareWithOneThread = "a bare HAProxy with one thread";

const sameFields = "an nginx that adds the same fields, without counting";

function goalOf(who: string, hosts: number): number | null {
  if (who === withoutCounting) return 0.9;
  if ([sameFields, withOneThread, bareWithOneThread].includes(who)) return null;
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
  const loads = new Map<string, Load[]>();
  for (let round = 0; round < rounds; round += 1) {
    for (const [who, rival] of Object.entries(rivals))
      loads.set(who, [...(loads.get(who) ?? []), await load(dir, rival, way)]);
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

interface Load {
  readonly perSecond: number;
  readonly secondsEach: number;
}

/** Returns wrk's counts; throws if any response was an error. */
async function load(dir: string, { plain, tls, pid }: Rival, way: Way): Promise<Load> {
  // wrk sends the server's name (SNI) only when it is not an IP address.
  const url = way === "tls" ? `https://localhost:${tls}/` : `http://${host}:${plain}/`;
  const extra = way === "new" ? ["-H", "Connection: close"] : [];
  const args = ["-t1", `-c${connections}`, `-d${seconds}s`, "-s", join(dir, "spread.lua"), ...extra, url];
  const before = secondsOfTree(pid);
  const { stdout } = await runOk({ file: programPath("wrk") as string, args }, { timeoutMs: (seconds + 20) * 1000 });
  if (/Non-2xx/.test(stdout)) throw new Error(`The load on ${url} met errors: ${stdout}`);
  const requests = Number(/(\d+) requests in/.exec(stdout)?.[1]);
  return {
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]),
    secondsEach: (secondsOfTree(pid) - before) / requests,
  };
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
  return timeRow(`HAProxy edge, one of ${hosts} routes changes`, "the goal of 50 ms", {
    ours: median(times),
    theirs: 50,
    goal: 1,
  });
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

/** The fields that Berth's edge adds to each request, as directives of nginx. */
const forwardingFields = Object.entries({
  ...{ "X-Forwarded-For": "$remote_addr", "X-Forwarded-Proto": "$scheme", "X-Forwarded-Host": "$http_host" },
  ...{ "X-Forwarded-Port": "$server_port", "X-Real-IP": "$remote_addr", "X-Request-Id": "$request_id" },
})
  .map(([name, value]) => `proxy_set_header ${name} ${value};`)
  .join(" ");

/** One server block for each host, as is usual with nginx. */
function nginxServers({ dir, hosts, upstream }: Subject, { plain, tls }: Ports, fields = ""): string {
  const proxy = `proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; ${fields}`;
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
async function startHaproxy(subject: Subject, { plain, tls }: Ports, threads?: number): Promise<Stop> {
  const { dir, hosts, upstream } = subject;
  const file = join(dir, `bare-${hosts}-${threads ?? "all"}.cfg`);
  const all = Array.from({ length: hosts }, (_, i) => i);
  await writeFile(join(dir, "bare.map"), all.map((i) => `host-${i}.test b${i}\n`).join(""));
  const backends = all.map((i) => `backend b${i}\n  server s ${host}:${upstream}\n`);
  await writeFile(
    file,
    `global
  ${threads === undefined ? "" : `nbthread ${threads}`}
defaults
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

interface Original {
  readonly folder: string;
  readonly ours: Rival;
  readonly name: string;
}

/** Starts Berth's own configuration with a change, on other ports. */
async function startChanged(
  { folder, ours, name }: Original,
  { plain, tls }: Ports,
  change: (text: string) => string,
): Promise<Stop> {
  const text = change(await readFile(join(folder, "haproxy", "haproxy.cfg"), "utf8"))
    .replace("admin.sock", `${name}.sock`)
    .replace(`:${ours.plain}\n`, `:${plain}\n`)
    .replace(`:${ours.tls} ssl`, `:${tls} ssl`);
  const file = join(folder, "haproxy", `${name}.cfg`);
  await writeFile(file, text);
  return startedHaproxy(file, plain);
}

function withoutCounts(text: string): string {
  return text
    .replaceAll(/^.*(?:track-sc0|sc_tracked|sc_inc_gpc|txn\.begun|txn\.took).*\n/gm, "")
    .replaceAll(/use_backend busy if .*/g, "use_backend busy if TRUE");
}

function inOneThread(text: string): string {
  return text.replace("global\n", "global\n  nbthread 1\n");
}

async function startedHaproxy(file: string, port: number): Promise<Stop> {
  const child = start({ file: programPath("haproxy") as string, args: ["-f", file] });
  if ((await until(() => accepts(port), { timeoutMs: 60_000 })) === undefined)
    throw new Error(`HAProxy did not start with ${file}.`);
  return stopOf(child);
}

async function freePorts(): Promise<Ports> {
  return { plain: await freePort(), tls: await freePort() };
}

function portOf(listen: string | null): number {
  return Number(listen?.split(":").at(-1));
}
