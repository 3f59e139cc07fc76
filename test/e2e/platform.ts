import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  mkdirSync,
} from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { asUserWithTun } from "../support/open-tun.ts";
import { run, start, systemPath, type ExecResult } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { freePort } from "../support/free-port.ts";
import { killProcesses, processesNaming } from "./processes.ts";
import { lendControlDatabase } from "../support/lend-control-database.ts";
import { guardMs } from "../support/eventually.ts";
import { keepNpmCode, lendNpmCode } from "../support/npm-code.ts";

const checkout = fileURLToPath(new URL("../../", import.meta.url));

/** A whole platform as a user runs it: `berthd start` in its own process, with its own data folder. */
export interface TestPlatform extends AsyncDisposable {
  readonly dataDir: string;
  readonly api: string;
  readonly edgePort: number;
  readonly token: string;
  readonly pid: number;
  /** Returns the output of the control plane so far. */
  output(): string;
  /** Sends this signal to the control plane and waits until it has ended. */
  end(signal: NodeJS.Signals): Promise<void>;
  /** Starts the control plane again on the same data, with `changed` settings. */
  restart(changed?: Record<string, string>): Promise<void>;
  /** Calls the API as the operator and returns status and body. */
  call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<{ status: number; body: T }>;
  /** Requests a path of an application through the edge. */
  visit(slug: string, path?: string, headers?: Record<string, string>): Promise<Visit>;
  /** Stops everything and deletes the data. */
  destroy(): Promise<void>;
}

export interface Visit {
  readonly status: number;
  readonly body: string;
  readonly headers: Record<string, string | string[] | undefined>;
}

/** The user, folder and network of a platform. Defaults: this user, a new folder, this machine's network. */
export interface Place {
  readonly dataDir?: string;
  readonly uid?: number;
  /** Whether the platform creates its control database, as at a user's first start, instead of getting a copy of an empty one. */
  readonly startsFromNothing?: boolean;
  /** Whether to run as an ordinary user with access to /dev/net/tun, which pasta needs. */
  readonly hasTun?: boolean;
  /** Whether it lacks parts of projects, so that it works without ever being ready. */
  readonly lacksParts?: boolean;
  /** A command prefix that runs the rest of the command in another machine's network. */
  readonly enter?: readonly string[];
}

/** What a platform needs before it starts: a folder, three free ports, and the environment variables that name them. */
export interface Ground {
  readonly dataDir: string;
  readonly api: string;
  readonly ports: { readonly http: number; readonly edge: number; readonly ssh: number };
  readonly env: Record<string, string>;
}

/** Chooses ports that `settings` do not name and, unless `given`, creates a folder. `settings` are further BERTH_… variables. */
export async function layGround(settings: Record<string, string> = {}, given?: string): Promise<Ground> {
  const dataDir = given ?? mkdtempSync(join(tmpdir(), "berth-e2e-"));
  const http = Number(settings["BERTH_HTTP_PORT"] ?? (await freePort()));
  const ports = { http, edge: await freePort(), ssh: await freePort() };
  const named = { BERTH_HTTP_PORT: `${ports.http}`, BERTH_EDGE_PORT: `${ports.edge}`, BERTH_SSH_PORT: `${ports.ssh}` };
  const env: Record<string, string> = {
    ...inherited(),
    BERTH_DATA: dataDir,
    BERTH_EXAMPLE: "0",
    ...named,
    ...settings,
  };
  return { dataDir, api: `http://${settings["BERTH_LISTEN"] ?? "127.0.0.1"}:${ports.http}`, ports, env };
}

/** Starts a platform; `settings` are further BERTH_… variables. */
export async function startPlatform(settings: Record<string, string> = {}, place: Place = {}): Promise<TestPlatform> {
  const { dataDir, api, ports, env } = await layGround(settings, place.dataDir);
  const edge = ports.edge;
  const toolsDir = join(dataDir, "toolchain", "builds");
  // An ordinary user must own all files, and the platform must create a missing folder, so lend nothing then.
  if (place.uid === undefined && existsSync(dataDir)) lendNpmCode(toolsDir);
  if (isNew(place) && settings["BERTH_DATABASE_URL"] === undefined) await lendControlDatabase(dataDir);
  const bootHere = (changed = {}) =>
    boot({ ...env, ...changed }, api, place).catch((error: unknown) => abandon(dataDir, error));
  let process = await bootHere();
  const token = readFileSync(join(dataDir, "admin-token"), "utf8").trim();
  const end = (signal: NodeJS.Signals) => process.end(signal);
  return {
    [Symbol.asyncDispose](this: TestPlatform) {
      return this.destroy();
    },
    dataDir,
    api,
    edgePort: edge,
    token,
    get pid() {
      return process.pid;
    },
    output: () => process.output(),
    end,
    async restart(changed) {
      process = await bootHere(changed);
    },
    call: <T>(method: string, path: string, body?: unknown) => call<T>(api, token, { method, path, body }),
    visit: (slug, path = "/", headers = {}) => visit(edge, `${slug}.localhost`, path, headers),
    async destroy() {
      // A killed control plane leaves processes behind. Only a restarted one can end them.
      if (process.isOver()) process = await bootHere();
      await process.end("SIGINT");
      if (place.uid === undefined) keepNpmCode(toolsDir);
      killProcesses(processesNaming(dataDir));
      // Processes that are ending may still write files.
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
}

/** Whether the platform gets a new folder, without being a test of the first start. */
function isNew({ dataDir, uid, startsFromNothing = false }: Place): boolean {
  return dataDir === undefined && uid === undefined && !startsFromNothing;
}

// On a fresh machine, the start may install packages.
const bootTimeoutMs = 300_000;
// A real application's build takes minutes on a busy machine. The platform's own limit is 15 minutes.
const pushGuardMs = 2 * guardMs;

function abandon(dataDir: string, error: unknown): never {
  killProcesses(processesNaming(dataDir));
  throw error;
}

/** Starts `berthd start` in its own process, without waiting until it is ready. */
export function launch(env: Record<string, string>, { uid, hasTun = false, enter = [] }: Place = {}) {
  const { here, node } = checkoutFor(uid);
  // As bin/berthd starts it.
  const data = env["BERTH_DATA"] ?? "";
  const isAgain = uid === undefined && existsSync(join(data, "admin-token"));
  const cache = isAgain ? { NODE_COMPILE_CACHE: join(data, "compiled-code") } : {};
  const heaps = { MALLOC_ARENA_MAX: "2", MALLOC_MMAP_THRESHOLD_: "69632", ...cache };
  const own = ["--max-semi-space-size=4", join(here, "src/daemon/main.ts"), "start"];
  const [first, ...others] = enter;
  const daemon = first === undefined ? { file: node, args: own } : { file: first, args: [...others, node, ...own] };
  if (hasTun && uid !== undefined) return start(asUserWithTun(uid, daemon), { env: { ...heaps, ...env }, cwd: here });
  return start(daemon, { env: { ...heaps, ...env }, cwd: here, ...(uid === undefined ? {} : { uid, gid: uid }) });
}

async function boot(env: Record<string, string>, api: string, place: Place) {
  const child = launch(env, place);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  let isOver = false;
  const over = new Promise<void>((resolve) => child.once("close", () => resolve(void (isOver = true))));
  const isReady = await until(() => (isOver ? false : askReady(api, place.lacksParts ? "/healthz" : "/readyz")), {
    timeoutMs: bootTimeoutMs,
  });
  if (isReady !== true) {
    child.kill("SIGKILL");
    throw new Error(`the platform did not become ready:\n${output}`);
  }
  return {
    pid: child.pid as number,
    output: () => output,
    isOver: () => isOver,
    async end(signal: NodeJS.Signals) {
      if (!isOver) child.kill(signal);
      await over;
    },
  };
}

/** Returns true if the platform at this address is ready, else undefined. */
export async function askReady(api: string, path = "/readyz"): Promise<true | undefined> {
  const response = await fetch(`${api}${path}`).catch(() => undefined);
  await response?.body?.cancel();
  return response?.status === 200 ? true : undefined;
}

async function call<T>(api: string, token: string, wanted: { method: string; path: string; body: unknown }) {
  const { method, path, body } = wanted;
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body === undefined ? {} : { "content-type": "application/json" }),
  };
  const response = await fetch(`${api}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: (text === "" ? {} : JSON.parse(text)) as T };
}

// fetch cannot resolve names below localhost, so this connects to the edge's address with a Host header.
function visit(port: number, host: string, path: string, headers: Record<string, string>): Promise<Visit> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { host: "127.0.0.1", port, path, headers: { host, ...headers }, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            body: Buffer.concat(chunks).toString(),
            headers: response.headers,
          }),
        );
      },
    );
    asked.on("error", reject).end();
  });
}

/** A git repository with these files, ready to be pushed to the project. */
export interface TestApp {
  readonly dir: string;
  git(...args: string[]): Promise<ExecResult>;
  /** Writes files and commits them. */
  commit(files: Record<string, string>, message?: string): Promise<void>;
  /** Runs `git push`; the result contains git's exit code, and the `remote:` lines in stderr. */
  push(branch?: string, onStderr?: (chunk: Buffer) => void): Promise<ExecResult>;
  /** Pushes to another project of the organization. */
  pushTo(slug: string): Promise<ExecResult>;
  /** Returns the commit that is checked out. */
  head(): Promise<string>;
  /** Returns the commit of the branch on the platform, or an empty string. */
  remoteHead(branch?: string): Promise<string>;
}

const appFolders: string[] = [];

/** Creates a folder that is deleted when the test process exits, even if the test failed. */
function makeAppFolder(): string {
  if (appFolders.length === 0)
    globalThis.process.once("exit", () => {
      for (const dir of appFolders) rmSync(dir, { recursive: true, force: true });
    });
  const dir = mkdtempSync(join(tmpdir(), "berth-app-"));
  appFolders.push(dir);
  return dir;
}

/** Creates the project and a repository for it. */
export async function createApp(
  platform: Pick<TestPlatform, "api" | "token" | "call"> &
    Partial<Pick<TestPlatform, "output">> & { readonly org?: string; readonly storage?: boolean },
  slug: string,
  files: Record<string, string>,
): Promise<TestApp> {
  const created = await platform.call("POST", "/v1/projects", { slug, name: slug });
  if (created.status !== 201) throw new Error(`the project was not created: ${JSON.stringify(created.body)}`);
  if (platform.storage === false) await platform.call("PUT", `/v1/projects/${slug}/settings`, { storage: false });
  const dir = makeAppFolder();
  const header = `Authorization: Basic ${Buffer.from(`berth:${platform.token}`).toString("base64")}`;
  const env = {
    ...inherited(),
    HOME: dir,
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "http.extraHeader",
    GIT_CONFIG_VALUE_0: header,
  };
  const git = (...args: string[]) => run({ file: "git", args }, { cwd: dir, env, timeoutMs: guardMs });
  const remoteOf = (project: string) => `${platform.api}/git/${platform.org ?? "main"}/${project}.git`;
  const remote = remoteOf(slug);
  await git("init", "--quiet", "--initial-branch=main");
  await git("config", "user.name", "Tester");
  await git("config", "user.email", "tester@localhost");
  const app: TestApp = {
    dir,
    git,
    async commit(changed, message = "Change") {
      for (const [path, text] of Object.entries(changed)) {
        mkdirSync(dirname(join(dir, path)), { recursive: true });
        writeFileSync(join(dir, path), text);
      }
      await git("add", "--all");
      await git("commit", "--quiet", "--allow-empty", `--message=${message}`);
    },
    async push(branch = "main", onStderr) {
      const pushed = await run(
        { file: "git", args: ["push", remote, `HEAD:refs/heads/${branch}`] },
        { cwd: dir, env, timeoutMs: pushGuardMs, ...(onStderr === undefined ? {} : { onStderr }) },
      );
      const isFault = pushed.stderr.includes("platform_fault");
      return isFault ? { ...pushed, stderr: `${pushed.stderr}\n${platform.output?.().slice(-5000)}` } : pushed;
    },
    pushTo: (other) => git("push", remoteOf(other), "HEAD:refs/heads/main"),
    head: async () => (await git("rev-parse", "HEAD")).stdout.trim(),
    remoteHead: async (branch = "main") =>
      (await git("ls-remote", remote, `refs/heads/${branch}`)).stdout.split("\t")[0] ?? "",
  };
  await app.commit(files);
  return app;
}

/** Returns a Node.js server without dependencies that responds with `text`; `more` is code that runs before it listens. */
export function nodeApp(text: string, more = ""): Record<string, string> {
  return {
    "package.json": JSON.stringify({ name: "demo", private: true, scripts: { start: "node server.js" } }),
    "server.js": `${more}\nrequire("node:http").createServer((request, response) => response.end(${JSON.stringify(text)})).listen(process.env.PORT, process.env.HOST);\n`,
  };
}

/** Returns a command of `berthd`, of this checkout. */
export function berthd(...args: string[]) {
  const { here, node } = checkoutFor(undefined);
  return { file: node, args: [join(here, "src/daemon/main.ts"), ...args] };
}

/** Restores a platform, without starting it; `settings` are BERTH_… variables. */
export function restore(settings: Record<string, string>, from: string, key: string, ...more: string[]) {
  return run(berthd("restore", from, "--key", key, ...more), {
    env: { ...inherited(), ...settings },
    timeoutMs: guardMs,
  });
}

/** Returns the environment variables that a test platform inherits from this process. */
export function inherited(): Record<string, string> {
  const wanted = [
    "PATH",
    "HOME",
    "LANG",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "NODE_COMPILE_CACHE",
    "npm_config_registry",
    "PIP_INDEX_URL",
    "PIP_FIND_LINKS",
  ];
  const pairs = wanted.flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name] as string] as const],
  );
  return { PATH: systemPath, ...Object.fromEntries(pairs) };
}

let copied: string | undefined;

/** Returns this checkout, or a copy of it if this user cannot read the checkout. */
export function checkoutFor(uid: number | undefined): { readonly here: string; readonly node: string } {
  const { execPath } = globalThis.process;
  if (uid === undefined || (isOpen(checkout) && isOpen(dirname(execPath)))) return { here: checkout, node: execPath };
  if (copied === undefined) {
    copied = mkdtempSync(join(tmpdir(), "berth-checkout-"));
    chmodSync(copied, 0o755);
    mkdirSync(join(copied, ".toolchain/bin"), { recursive: true });
    cpSync(execPath, join(copied, ".toolchain/bin/node"));
    for (const name of [
      "node_modules",
      "bin",
      "src",
      "sql",
      "tools",
      "examples",
      "package.json",
      "package-lock.json",
      "openapi.json",
    ]) {
      cpSync(join(checkout, name), join(copied, name), { recursive: true, verbatimSymlinks: true });
    }
    globalThis.process.once("exit", () => rmSync(copied as string, { recursive: true, force: true }));
  }
  return { here: copied, node: join(copied, ".toolchain/bin/node") };
}

/** Whether all users can read this path and enter every parent folder. */
function isOpen(path: string): boolean {
  const parent = dirname(path);
  return (statSync(path).mode & 0o005) === 0o005 && (parent === path || isOpen(parent));
}
