import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer, connect, type AddressInfo } from "node:net";
import { join } from "node:path";
import { start, systemPath } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";

const host = "127.0.0.1";

export function answering(port: number): string {
  return `server { listen ${host}:${port}; location / { default_type text/plain; return 200 "hello world\\n"; } }`;
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
