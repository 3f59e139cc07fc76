import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { runOk, start, systemPath } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";

const host = "127.0.0.1";

export function answering(port: number): string {
  return `server { listen ${host}:${port}; location / { default_type text/plain; return 200 "hello world\\n"; } }`;
}

/** A program that a bench started; `pid` is its main process, whose children are the workers. */
export type Started = Disposable & { readonly pid: number };

export async function startNginx(dir: string, name: string, servers: string): Promise<Started> {
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
  return started(child);
}

export function started(child: ReturnType<typeof start>): Started {
  return { pid: child.pid as number, [Symbol.dispose]: () => void child.kill("SIGTERM") };
}

export function accepts(port: number): Promise<true | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.on("connect", () => (socket.destroy(), resolve(true)));
    socket.on("error", () => resolve(undefined));
  });
}

/** Loads a URL with 64 connections; returns wrk's counts. Throws if any response was an error. */
export async function load(url: string, seconds: number, ...more: readonly string[]) {
  const args = ["-t1", "-c64", `-d${seconds}s`, ...more, url];
  const { stdout } = await runOk({ file: programPath("wrk") as string, args }, { timeoutMs: (seconds + 20) * 1000 });
  if (/Non-2xx/.test(stdout)) throw new Error(`The load on ${url} met errors: ${stdout}`);
  const counted = (what: RegExp) => Number(what.exec(stdout)?.[1]);
  return { perSecond: counted(/Requests\/sec:\s+([\d.]+)/), requests: counted(/(\d+) requests in/) };
}

/** Returns which of these programs the machine lacks to measure something, as a sentence; undefined if none. */
export function lacks(what: string, ...programs: readonly string[]): string | undefined {
  const missing = programs.filter((name) => programPath(name) === undefined);
  return missing.length === 0 ? undefined : `${what} not measured: ${missing.join(" and ")} not installed.`;
}

export function programPath(name: string): string | undefined {
  return systemPath
    .split(":")
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}
