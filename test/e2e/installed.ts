import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import {
  cpSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { run, runOk, startDetached } from "../../src/kit/exec.ts";
import { packRelease, publicKeyOf, signRelease } from "../../tools/release/pack-release.ts";
import { eventually } from "../support/eventually.ts";
import { liveApp } from "./apps.ts";
import { askReady, createApp, layGround, type Ground } from "./platform.ts";
import { findProcess, killProcesses, processesNaming, type ListedProcess } from "./processes.ts";

const checkout = resolve(import.meta.dirname, "../..");
const privateKey = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();

/** What each release changes of this checkout's files: text in front of a file's, or what a function makes of it. The first one is installed. */
export type Releases = Readonly<Record<string, Readonly<Record<string, string | ((text: string) => string)>>>>;

/** A platform that install.sh has installed, with the application `shop`, whose releases this process serves. */
export interface InstalledPlatform {
  /** Contains the program files, in `berth`, and the log. */
  readonly folder: string;
  readonly prefix: string;
  readonly ground: Ground;
  readonly token: string;
  /** Is called before an archive is sent. */
  onFetch: () => Promise<void>;
  /** Runs `berth platform upgrade` to its end and returns what `berth platform versions` shows then. */
  upgradeTo(version: string, ...more: string[]): Promise<Versions>;
  /** Runs another command of `berth`. */
  berth(...args: string[]): ReturnType<typeof run>;
  steps(): readonly { readonly step: string; readonly source?: string }[];
  controlPlane(): ListedProcess;
  /** Returns the end of what the control planes and the upgrade wrote. */
  output(): string;
  call<T>(method: string, path: string, body?: unknown): Promise<{ status: number; body: T }>;
  close(): void;
}

export interface Versions {
  readonly version: string;
  readonly installed: readonly { readonly version: string; readonly current: boolean; readonly processes: number }[];
  readonly upgrade: { readonly to: string | null; readonly status: string; readonly reason: string | null };
}

/** Folders that the caller makes and removes; new ones by default. */
interface Places {
  readonly folder?: string;
  readonly dataDir?: string;
}

export async function startInstalled(versions: Releases, places: Places = {}): Promise<InstalledPlatform> {
  const folder = places.folder ?? mkdtempSync(join(tmpdir(), "berth-upgrade-"));
  const [prefix, releases] = [join(folder, "berth"), mkdtempSync(join(tmpdir(), "berth-releases-"))];
  // Node.js finds packages in the folders above a version, so the archives need none.
  mkdirSync(prefix, { recursive: true });
  symlinkSync(join(checkout, "node_modules"), join(prefix, "node_modules"));
  const archives = [];
  for (const [version, changes] of Object.entries(versions))
    archives.push(await makeRelease(releases, version, changes));
  await signRelease(releases, archives, privateKey);
  const [first = ""] = Object.keys(versions);
  await runOk(
    { file: "/bin/sh", args: [join(releases, "install.sh"), "--no-start", "--prefix", prefix, "--version", first] },
    { env: { PATH: process.env["PATH"] ?? "", HOME: folder } },
  );
  const server = createServer(async ({ url = "" }, response) => {
    if (url.endsWith(".zst")) await installed.onFetch();
    const file = createReadStream(join(releases, basename(url)));
    file.once("error", () => response.writeHead(404).end()).pipe(response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const settings = {
    BERTH_ON_STOP: "keep",
    BERTH_RELEASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    BERTH_UPGRADE_WATCH_SECONDS: "3",
    BERTH_NODE: process.execPath,
  };
  const ground = await layGround(settings, places.dataDir);
  // Whatever the shell hides from others, users of applications read the program's files.
  const starter = ["-c", 'umask 077; exec "$0" start', join(prefix, "bin/berthd")];
  await startDetached({ file: "/bin/sh", args: starter }, join(folder, "log"), { env: ground.env });
  await eventually(() => askReady(ground.api), "the platform is ready");
  const token = readFileSync(join(ground.dataDir, "admin-token"), "utf8").trim();
  const berth = (...args: string[]) =>
    run(
      { file: join(prefix, "bin/berth"), args },
      { env: { ...ground.env, HOME: folder, BERTH_URL: ground.api, BERTH_TOKEN: token }, timeoutMs: 180_000 },
    );
  const installed: InstalledPlatform = {
    ...{ folder, prefix, ground, token, berth },
    onFetch: async () => {},
    async upgradeTo(version, ...more) {
      const { stdout, stderr } = await berth("platform", "upgrade", version, "--json", ...more);
      assert.notEqual(stdout, "", `${stderr}\n${JSON.stringify(installed.steps())}\n${installed.output()}`);
      return JSON.parse(stdout) as Versions;
    },
    steps() {
      const file = join(ground.dataDir, "upgrade/steps");
      const text = existsSync(file) ? readFileSync(file, "utf8") : "";
      return text
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { step: string });
    },
    controlPlane() {
      const found = findProcess((line) => line.includes(prefix) && line.endsWith("main.ts start"));
      assert.ok(found, "the control plane runs");
      return found;
    },
    output: () => lastLines(folder, ground),
    call: (method, path, body) => call(ground.api, token, { method, path, body }),
    close() {
      server.close();
      killProcesses([...processesNaming(folder), ...processesNaming(ground.dataDir)]);
      const given = Object.values(places);
      for (const each of [folder, releases, ground.dataDir].filter((made) => !given.includes(made)))
        rmSync(each, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
  const app = await createApp({ ...installed, api: ground.api }, "shop", liveApp({ version: "shop" }));
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  return installed;
}

// `switching` follows `rehearsed` within milliseconds, so no poll sees the latter as the last line.
export const killedAfter = ["requested", "fetched", "checked", "backed_up", "copied", "switching", "switched"];

/** Kills the process of the upgrade to this version once after each of `killedAfter`, and returns the steps after which it was running. */
export async function killAfterSteps(platform: InstalledPlatform, to: string): Promise<readonly string[]> {
  const killed = new Set<string>();
  const look = () => {
    const lines = platform.steps();
    const last = lines[0]?.source === to ? (lines.at(-1)?.step ?? "") : "";
    if (!killedAfter.includes(last) || killed.has(last)) return;
    const runner = findProcess((line) => line.endsWith("main.ts upgrade") && line.includes(platform.prefix));
    if (runner === undefined) return;
    killed.add(last);
    killProcesses([runner]);
  };
  // The shortest step takes a tenth of a second.
  const looking = setInterval(look, 10);
  await eventually(() => {
    const lines = platform.steps();
    return lines.at(-1)?.step === "done" && lines[0]?.source === to;
  }, "the upgrade is done").finally(() => clearInterval(looking));
  return [...killed];
}

function lastLines(folder: string, ground: Ground): string {
  const files = [join(folder, "log"), join(ground.dataDir, "logs/berthd.log"), join(ground.dataDir, "upgrade/log")];
  return files
    .map((file) => (existsSync(file) ? `${file}:\n${readFileSync(file, "utf8").slice(-2000)}` : ""))
    .join("\n");
}

interface Wanted {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

async function call<T>(
  api: string,
  token: string,
  { method, path, body }: Wanted,
): Promise<{ status: number; body: T }> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(`${api}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as T };
}

/** Packs this checkout's product files as a release without packages and Node.js, and returns the archive's path. */
async function makeRelease(releases: string, version: string, changes: Releases[string]): Promise<string> {
  const stage = join(releases, "stage");
  for (const path of ["bin", "docs", "examples", "sql", "src", "tools/setup/prepare.sh", "package-lock.json"])
    cpSync(join(checkout, path), join(stage, path), { recursive: true });
  const manifest = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as object;
  writeFileSync(join(stage, "package.json"), JSON.stringify({ ...manifest, version }));
  for (const [path, text] of Object.entries(changes)) {
    const file = join(stage, path);
    const before = existsSync(file) ? readFileSync(file, "utf8") : "";
    writeFileSync(file, typeof text === "string" ? text + before : text(before));
  }
  mkdirSync(join(stage, "dashboard"));
  writeFileSync(join(stage, "dashboard/index.html"), "a dashboard");
  mkdirSync(join(stage, "node_modules"));
  writeFileSync(join(stage, "node_modules/.package-lock.json"), "{}");
  const stamp = await runOk({ file: "cksum", args: [] }, { stdin: readFileSync(join(stage, "package-lock.json")) });
  writeFileSync(join(stage, "node_modules/.berth-stamp"), stamp.stdout);
  // install.sh runs the release's own Node.js once.
  mkdirSync(join(stage, ".toolchain/bin"), { recursive: true });
  symlinkSync("/bin/true", join(stage, ".toolchain/bin/node"));
  writeFileSync(join(stage, "release.json"), JSON.stringify({ version, commit: "0".repeat(40) }));
  writeFileSync(join(stage, "release-key.pem"), publicKeyOf(privateKey));
  const archive = await packRelease(stage, releases, { version, timeMs: 0, arch: process.arch });
  rmSync(stage, { recursive: true });
  return archive;
}
