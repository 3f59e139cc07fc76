import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import pg from "pg";
import { runOk, start, systemPath, type Command } from "../../src/kit/exec.ts";
import type { ServerAddress } from "../../src/kit/server-address.ts";
import { findPostgres } from "../../tools/template-db/find-postgres.ts";
import { serversFolder } from "../../tools/template-db/servers-folder.ts";
import { eventually, guardMs } from "./eventually.ts";
import { freePort } from "./free-port.ts";

/** One server of a cluster that an operator runs outside the platform. */
export interface ClusterServer extends ServerAddress {
  /** Runs a statement on a new connection of the superuser. */
  query(sql: string): Promise<Record<string, unknown>[]>;
  /** Kills the server without notice to its clients, as the loss of its machine does. Idempotent. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface TestCluster {
  readonly user: string;
  readonly password: string;
  /** The folder with the primary's Unix socket. */
  readonly socketDir: string;
  /** The self-signed certificate of its servers, for `host` and `localhost`. */
  readonly caFile: string;
  readonly primary: ClusterServer;
  /** Adds a standby server that streams from the primary. */
  addStandby(): Promise<ClusterServer>;
  remove(): Promise<void>;
}

/** Why no cluster can start here; false where one can. */
export const missingCluster: string | false = canFind() ? false : "PostgreSQL is not installed";

// initdb needs a user that is not root and has a name. Every machine has the user `nobody`.
const nobody = 65_534;
const superuser = "platform";

/** Starts a cluster with its own superuser on `host` and on a Unix socket; with `onlyTls` it refuses network connections without TLS. */
export async function startTestCluster(host = "127.0.0.1", { onlyTls = false } = {}): Promise<TestCluster> {
  const dir = mkdtempSync(join(serversFolder(), "bc-"));
  chmodSync(dir, 0o711);
  const password = randomBytes(12).toString("hex");
  const place = { dir, bin: findPostgres(), password };
  const secret = join(dir, "secret");
  writeFileSync(secret, password);
  give(dir, secret);
  const data = join(dir, "primary");
  const content = ["--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--auth=scram-sha-256"];
  await run(place, "initdb", [`--pgdata=${data}`, `--username=${superuser}`, `--pwfile=${secret}`, ...content]);
  const others = "host all,replication all all scram-sha-256\n";
  const rules = onlyTls ? `local all all scram-sha-256\nhostssl${others.slice("host".length)}` : others;
  writeFileSync(join(data, "pg_hba.conf"), rules, { flag: onlyTls ? "w" : "a" });
  const caFile = await makeCertificate(dir, host);
  const servers = [serverIn(place, { data, host, port: await freePort() })];
  const [primary] = servers as [ClusterServer];
  await primary.start();
  return {
    ...{ user: superuser, password, socketDir: dir, primary, caFile },
    async addStandby() {
      const copy = join(dir, `standby-${servers.length}`);
      const from = [`--host=${host}`, `--port=${primary.port}`, `--username=${superuser}`];
      await run(place, "pg_basebackup", [...from, `--pgdata=${copy}`, "--write-recovery-conf", "--checkpoint=fast"]);
      const standby = serverIn(place, { data: copy, host, port: await freePort() });
      servers.push(standby);
      await standby.start();
      return standby;
    },
    async remove() {
      for (const server of servers) await server.kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function makeCertificate(dir: string, host: string): Promise<string> {
  const [key, certificate] = [join(dir, "server.key"), join(dir, "server.pem")];
  const names = `subjectAltName=DNS:localhost,IP:${host === "127.0.0.1" ? "192.0.2.7" : host}`;
  const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const args = ["req", ...kind, "-subj", "/CN=postgres", "-addext", names, "-keyout", key, "-out", certificate];
  await runOk({ file: "openssl", args });
  give(key, certificate);
  return certificate;
}

interface Place {
  readonly dir: string;
  readonly bin: string;
  readonly password: string;
}

function serverIn(place: Place, { data, host, port }: ServerAddress & { readonly data: string }): ClusterServer {
  let child: ReturnType<typeof start> | undefined;
  let output = "";
  const ssl = { rejectUnauthorized: false };
  const query = async (sql: string) => {
    const client = new pg.Client({ host, port, user: superuser, password: place.password, database: "postgres", ssl });
    client.on("error", () => {});
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows;
    } finally {
      await client.end().catch(() => {});
    }
  };
  const settings = {
    ...{ listen_addresses: host, port, unix_socket_directories: place.dir, unix_socket_permissions: "0777" },
    ...{ ssl: "on", ssl_cert_file: join(place.dir, "server.pem"), ssl_key_file: join(place.dir, "server.key") },
    ...{ max_connections: 60, shared_buffers: "16MB", fsync: "off", autovacuum: "off", jit: "off" },
  };
  const args = [`-D${data}`, ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])];
  return {
    ...{ host, port, query },
    async start() {
      child = start(asUser({ file: join(place.bin, "postgres"), args }, ["--pdeathsig", "QUIT"]));
      child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
      child.stdout.resume();
      const answers = async () => {
        if (child?.exitCode !== null) throw new Error(`the server did not start: ${output.slice(-2000)}`);
        return query("select 1").catch(() => undefined);
      };
      await eventually(answers, "the server of the cluster answers");
    },
    async kill() {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "close");
      child.kill("SIGQUIT");
      await ended;
    },
  };
}

async function run({ bin, password }: Place, program: string, args: readonly string[]): Promise<void> {
  const env = { PATH: systemPath, PGPASSWORD: password, LC_ALL: "C.UTF-8" };
  await runOk(asUser({ file: join(bin, program), args }), { env, timeoutMs: guardMs });
}

function asUser({ file, args }: Command, options: readonly string[] = []): Command {
  const user = isRoot() ? ["--reuid", `${nobody}`, "--regid", `${nobody}`, "--clear-groups"] : [];
  return { file: "/usr/bin/setpriv", args: [...user, ...options, "--", file, ...args] };
}

function give(...paths: readonly string[]): void {
  if (isRoot()) for (const path of paths) chownSync(path, nobody, nobody);
}

const isRoot = () => process.getuid?.() === 0;

function canFind(): boolean {
  try {
    return existsSync("/usr/bin/setpriv") && existsSync(findPostgres());
  } catch {
    return false;
  }
}
