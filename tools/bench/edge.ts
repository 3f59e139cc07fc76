import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBuiltinEdge } from "../../src/adapters/edge-builtin/builtin-edge.ts";
import { readRecord } from "../../src/adapters/edge-builtin/edge-record.ts";
import { runOk, start, systemPath } from "../../src/kit/exec.ts";
import { silentLog } from "../../src/kit/log.ts";
import { until } from "../../src/kit/until.ts";
import type { Route } from "../../src/ports/edge.ts";
import { secondsOfTree } from "./processor-time.ts";
import { costRow, median, rateRow, type BenchRow } from "./row.ts";

const rounds = 3;
const seconds = 4;
const connections = 64;
const host = "127.0.0.1";
const goal = 0.35;

/** Returns what the machine lacks for `measureEdge`, as a sentence; undefined if nothing. */
export function edgeBenchLacks(): string | undefined {
  const missing = ["nginx", "wrk"].filter((name) => programPath(name) === undefined);
  return missing.length === 0 ? undefined : `The edge is not measured: ${missing.join(" and ")} not installed.`;
}

/**
 * Compares the built-in edge with an nginx that does the same, in front of the same upstream (another nginx), over kept connections: with
 * one host and with 10,000. Throws if `edgeBenchLacks` something.
 */
export async function measureEdge(): Promise<BenchRow[]> {
  const dir = await mkdtemp(join(tmpdir(), "berth-bench-edge-"));
  const [upstream, rival] = [await freePort(), await freePort()];
  const nginx = await startNginx(dir, "rival", proxying(rival, upstream));
  const stops = [await startNginx(dir, "upstream", answering(upstream)), nginx];
  try {
    const theirs = { listen: `${host}:${rival}`, pid: nginx.pid };
    return [...(await compare(dir, 1, upstream, theirs)), ...(await compare(dir, 10_000, upstream, theirs))];
  } finally {
    for (const stop of stops) stop();
    await rm(dir, { recursive: true, force: true });
  }
}

interface Rival {
  readonly listen: string;
  /** The process; if it has children, they serve the requests. */
  readonly pid: number;
}

async function compare(dir: string, hosts: number, upstream: number, nginx: Rival): Promise<BenchRow[]> {
  const stateDir = join(dir, `edge-${hosts}`);
  const edge = createBuiltinEdge({ listenHost: host, listenPort: 0, stateDir, log: silentLog });
  try {
    await edge.apply({ version: 1, routes: routesTo(upstream, hosts), challenge: null });
    const { listen } = await edge.observe();
    const { identity } = readRecord(stateDir) as NonNullable<ReturnType<typeof readRecord>>;
    const [ours, theirs]: [Load[], Load[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
      theirs.push(await load(nginx));
      ours.push(await load({ listen: listen as string, pid: identity.pid }));
    }
    const name = `64 kept connections, ${hosts === 1 ? "1 host" : `${hosts} hosts`}`;
    const rate = (loads: readonly Load[]) => median(loads.map(({ perSecond }) => perSecond));
    const cost = (loads: readonly Load[]) => Math.min(...loads.map(({ secondsEach }) => secondsEach));
    return [
      rateRow(`edge, ${name}`, "nginx, 1 worker", { ours: rate(ours), theirs: rate(theirs), goal }),
      costRow(`edge, a request, ${name}`, "nginx, 1 worker", { ours: cost(ours), theirs: cost(theirs) }),
    ];
  } finally {
    await edge.stop(0);
  }
}

interface Load {
  readonly perSecond: number;
  /** In CPU time. */
  readonly secondsEach: number;
}

/** Returns wrk's counts; throws if any response was an error. */
async function load({ listen, pid }: Rival): Promise<Load> {
  const args = ["-t1", `-c${connections}`, `-d${seconds}s`, "-H", "Host: bench.test", `http://${listen}/`];
  const before = secondsOfTree(pid);
  const { stdout } = await runOk({ file: programPath("wrk") as string, args }, { timeoutMs: (seconds + 10) * 1000 });
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`The load on ${listen} met errors: ${stdout}`);
  return {
    perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]),
    secondsEach: (secondsOfTree(pid) - before) / Number(/(\d+) requests in/.exec(stdout)?.[1]),
  };
}

function routesTo(port: number, hosts: number): Route[] {
  const targets = [{ host, port }];
  return Array.from({ length: hosts }, (_, i) => ({
    hostname: i === 0 ? "bench.test" : `host-${i}.test`,
    project_id: `prj_${i}`,
    targets,
    ...({ state: "serving", https: "off", hsts: false } as const),
  }));
}

export function answering(port: number): string {
  return `server { listen ${host}:${port}; location / { default_type text/plain; return 200 "hello world\\n"; } }`;
}

/** Configures the same work as the edge's: kept connections to the upstream, and replaced forwarding fields. */
function proxying(port: number, upstream: number): string {
  return `upstream app { server ${host}:${upstream}; keepalive 256; keepalive_requests 10000000; }
  server { listen ${host}:${port}; server_name bench.test; location / {
    proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Real-IP $remote_addr; } }`;
}

/** Ends a program that a bench started; `pid` is its main process, whose children are the workers. */
export type Stop = (() => void) & { readonly pid: number };

export async function startNginx(dir: string, name: string, servers: string): Promise<Stop> {
  const file = join(dir, `${name}.conf`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (each) => `${each}_temp_path ${dir}/${each};`,
  );
  await writeFile(
    file,
    `worker_processes 1; daemon off; pid ${dir}/${name}.pid; error_log ${dir}/${name}.log;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 10000000; ${temporary.join(" ")} ${servers} }\n`,
  );
  const child = start({ file: programPath("nginx") as string, args: ["-c", file, "-e", join(dir, `${name}.log`)] });
  const port = Number(/listen [\d.]+:(\d+)/.exec(servers)?.[1]);
  // 10,000 hosts that listen for TLS take nginx 8 seconds of CPU time.
  if ((await until(() => accepts(port), { timeoutMs: 120_000 })) === undefined)
    throw new Error(`nginx (${name}) did not start.`);
  return stopOf(child);
}

export function stopOf(child: ReturnType<typeof start>): Stop {
  return Object.assign(() => void child.kill("SIGTERM"), { pid: child.pid as number });
}

export function accepts(port: number): Promise<true | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.on("connect", () => (socket.destroy(), resolve(true)));
    socket.on("error", () => resolve(undefined));
  });
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, host, () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

export function programPath(name: string): string | undefined {
  return systemPath
    .split(":")
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}
