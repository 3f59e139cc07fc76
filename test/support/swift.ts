import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { send } from "../../src/adapters/storage-s3/requests.ts";
import { runOk, start, type Command } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { guardMs } from "./eventually.ts";

/** A real S3 server: OpenStack Swift with its S3 API, as Debian packages it. It checks signatures. */
export interface SwiftServer extends AsyncDisposable {
  readonly endpoint: string;
  readonly accessKeyId: string;
  readonly secretKey: string;
  readonly region: string;
  /** Makes a bucket and returns the settings of a platform that stores its backups in it. */
  bucket(name: string): Promise<Readonly<Record<string, string>>>;
  close(): Promise<void>;
}

const programs = ["account", "container", "object", "proxy"].map((name) => `/usr/bin/swift-${name}-server`);
const needed = [...programs, "/usr/bin/swift-ring-builder", "/usr/bin/memcached", "/usr/bin/bwrap"];

/** Why a Swift server cannot run here; false where it can. */
export const missingForSwift: string | false =
  (process.getuid?.() !== 0 && "a Swift server is started as root only") ||
  (needed.some((file) => !existsSync(file)) &&
    "a real S3 server: apt-get install swift-proxy swift-account swift-container swift-object memcached");

/** Starts Swift in a temporary folder, on free ports. Call `close` in `after`. */
export async function startSwift(): Promise<SwiftServer> {
  const dir = await mkdtemp(join(tmpdir(), "berth-swift-"));
  const [memcached = 0, object = 0, container = 0, account = 0, proxy = 0] = await freePorts(5);
  const ports = { object, container, account, proxy, memcached };
  await writeConfiguration(dir, ports);
  await buildRings(dir, ports);
  const commands = [
    { file: "/usr/bin/memcached", args: ["-u", "root", "-l", "127.0.0.1", "-p", String(memcached), "-m", "32"] },
    ...["account", "container", "object", "proxy"].map((name) => inside(dir, name)),
  ];
  const children = commands.map((command) => start(command));
  for (const child of children) child.stderr.resume();
  for (const child of children) child.stdout.resume();
  const endpoint = `http://127.0.0.1:${proxy}`;
  const close = async () => {
    await Promise.all(
      children.map(
        (child) =>
          new Promise((done) => (child.exitCode === null ? child.once("close", done).kill("SIGKILL") : done(null))),
      ),
    );
    await rm(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  // The proxy avoids an unreachable server for a minute, so all servers must answer before the first request.
  const servers = [object, container, account, proxy].map((port) => `http://127.0.0.1:${port}/healthcheck`);
  const answers = () => Promise.all(servers.map((url) => fetch(url))).catch(() => undefined);
  if ((await until(answers, { timeoutMs: guardMs })) === undefined) {
    await close();
    throw new Error("Swift did not come up within a minute");
  }
  const access = { endpoint, accessKeyId: "test:tester", secretKey: "testing", region: "us-east-1" };
  const bucket = async (name: string) => {
    await send({ ...access, bucket: name }, { method: "PUT" });
    const BERTH_S3_SECRET_KEY_FILE = join(dir, "secret");
    await writeFile(BERTH_S3_SECRET_KEY_FILE, access.secretKey, { mode: 0o600 });
    const user = encodeURIComponent(access.accessKeyId);
    const url = `${endpoint.replace("://", `://${user}@`)}/${name}/berth/?region=${access.region}`;
    return { BERTH_S3_URL: url, BERTH_S3_SECRET_KEY_FILE };
  };
  return { ...access, bucket, close, [Symbol.asyncDispose]: close };
}

type Ports = Readonly<Record<"object" | "container" | "account" | "proxy" | "memcached", number>>;

/** Swift reads its configuration only from /etc/swift, so each server gets its own through a mount namespace. */
function inside(dir: string, name: string): Command {
  const view = [
    "--bind",
    "/",
    "/",
    "--dev-bind",
    "/dev",
    "/dev",
    "--tmpfs",
    "/etc/swift",
    "--bind",
    join(dir, "etc"),
    "/etc/swift",
  ];
  const args = [
    ...view,
    "--unshare-pid",
    "--proc",
    "/proc",
    "--die-with-parent",
    "--cap-add",
    "ALL",
    "--",
    `/usr/bin/swift-${name}-server`,
    `/etc/swift/${name}.conf`,
  ];
  return { file: "/usr/bin/bwrap", args };
}

async function writeConfiguration(dir: string, ports: Ports): Promise<void> {
  const etc = join(dir, "etc");
  await mkdir(etc, { recursive: true });
  await mkdir(join(dir, "dev", "d1"), { recursive: true });
  const common = (port: number) =>
    `[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = ${port}\nworkers = 0\nuser = root\nswift_dir = /etc/swift\ndevices = ${join(dir, "dev")}\nmount_check = false\ndisable_fallocate = true\nlog_level = ERROR\n`;
  for (const name of ["account", "container", "object"] as const) {
    const rest = ["replicator", "updater", "auditor"].map((part) => `[${name}-${part}]\n`).join("");
    await writeFile(
      join(etc, `${name}.conf`),
      `${common(ports[name])}[pipeline:main]\npipeline = ${name}-server\n[app:${name}-server]\nuse = egg:swift#${name}\n${rest}`,
    );
  }
  const filters = [
    "catch_errors",
    "gatekeeper",
    "healthcheck",
    "cache",
    "listing_formats",
    "bulk",
    "s3api",
    "tempauth",
    "copy",
    "slo",
    "dlo",
    "versioned_writes",
  ];
  const more: Readonly<Record<string, string>> = {
    cache: `memcache_servers = 127.0.0.1:${ports.memcached}\n`,
    s3api: "location = us-east-1\ns3_acl = false\n",
    tempauth: "user_test_tester = testing .admin\n",
  };
  const uses: Readonly<Record<string, string>> = { cache: "memcache" };
  const sections = filters.map(
    (name) => `[filter:${name}]\nuse = egg:swift#${uses[name] ?? name}\n${more[name] ?? ""}`,
  );
  const app = "[app:proxy-server]\nuse = egg:swift#proxy\nallow_account_management = true\naccount_autocreate = true\n";
  await writeFile(
    join(etc, "proxy.conf"),
    `${common(ports.proxy)}[pipeline:main]\npipeline = ${filters.join(" ")} proxy-server\n${app}${sections.join("")}`,
  );
  await writeFile(
    join(etc, "swift.conf"),
    "[swift-hash]\nswift_hash_path_suffix = test\nswift_hash_path_prefix = test\n[storage-policy:0]\nname = one\ndefault = yes\n",
  );
}

async function buildRings(dir: string, ports: Ports): Promise<void> {
  for (const name of ["account", "container", "object"] as const) {
    const file = join(dir, "etc", `${name}.builder`);
    const build = (...args: string[]) =>
      runOk({ file: "/usr/bin/swift-ring-builder", args: [file, ...args] }, { timeoutMs: guardMs });
    await build("create", "4", "1", "1");
    await build("add", `r1z1-127.0.0.1:${ports[name]}/d1`, "1");
    await build("rebalance");
  }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<ReturnType<typeof createServer>>((resolve) => {
          const server = createServer().listen(0, "127.0.0.1", () => resolve(server));
        }),
    ),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
