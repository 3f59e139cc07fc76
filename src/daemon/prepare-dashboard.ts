import { createHash } from "node:crypto";
import { access, constants, glob, mkdir, readFile, readdir, rename, rm } from "node:fs/promises";
import { extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { BundleState, DashboardBundle, DashboardFile } from "../http/dashboard.ts";
import { runOk } from "../kit/exec.ts";
import type { Log } from "../kit/log.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

export interface BundleOptions {
  /** Where bundles go if this user can't write to the checkout. */
  readonly fallbackDir: string;
  readonly log: Log;
}

/**
 * Builds the dashboard's bundle in the background unless this version has one; a release brings it. Returns a function that reports the bundle's state. The
 * bundle is not committed: it would be a generated file of 500 kB that conflicts with every change of a page.
 */
export function prepareDashboard(options: BundleOptions): () => BundleState {
  let state: BundleState = "building";
  const settle = (next: BundleState) => (state = next);
  void bundle(options).then(settle, (error: unknown) => {
    options.log.error({ error: String(error) }, "the dashboard could not be built");
    settle("failed");
  });
  return () => state;
}

async function bundle({ fallbackDir }: BundleOptions): Promise<DashboardBundle> {
  const shipped = await readBundle(join(root, "dashboard"));
  if (shipped !== undefined) return shipped;
  const version = await versionOfSources();
  const parent = (await isWritable(join(root, "node_modules")))
    ? join(root, "node_modules/.cache/berth-dashboard")
    : fallbackDir;
  const found = await readBundle(join(parent, version));
  if (found !== undefined) return found;
  await buildInto(parent, version);
  return (await readBundle(join(parent, version))) as DashboardBundle;
}

const sources = ["src/dashboard/**/*.*", "src/contract/*.ts", "src/bundler/*.ts"];

/** Returns a hash of everything that the bundle is built from. */
async function versionOfSources(): Promise<string> {
  const files = ["package-lock.json", ...(await Array.fromAsync(glob(sources, { cwd: root }))).toSorted()];
  const hash = createHash("sha256");
  for (const content of await Promise.all(files.map((file) => readFile(join(root, file))))) hash.update(content);
  return hash.digest("hex").slice(0, 16);
}

// Only stops a build that hangs: it runs at the lowest priority and takes minutes on a busy machine.
const buildTimeoutMs = 1_800_000;

// Several processes may build at once, each in a folder of its own; the first rename wins.
async function buildInto(parent: string, version: string): Promise<void> {
  const scratch = join(parent, `tmp-${process.pid}-${Date.now()}`);
  await mkdir(scratch, { recursive: true });
  try {
    const args = [join(root, "src/bundler/main.ts"), "build", scratch];
    await runOk(
      { file: process.execPath, args },
      { cwd: root, env: { NODE_ENV: "production" }, timeoutMs: buildTimeoutMs, isBackground: true },
    );
    await rename(scratch, join(parent, version)).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
    const others = (await readdir(parent)).filter((name) => name !== version && !name.startsWith("tmp-"));
    await Promise.all(others.map((name) => rm(join(parent, name), { recursive: true, force: true })));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function isWritable(dir: string): Promise<boolean> {
  return access(dir, constants.W_OK).then(
    () => true,
    () => false,
  );
}

async function readBundle(dir: string): Promise<DashboardBundle | undefined> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  if (paths.length === 0) return undefined;
  const files = await Promise.all(
    paths.map(async (path) => [`/${relative(dir, path)}`, await readBundleFile(path)] as const),
  );
  return { files: new Map(files) };
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

const compress = promisify(gzip);

async function readBundleFile(path: string): Promise<DashboardFile> {
  const bytes = await readFile(path);
  const type = types[extname(path)] ?? "application/octet-stream";
  return { bytes, type, gzip: extname(path) === ".woff2" ? undefined : await compress(bytes, { level: 9 }) };
}
