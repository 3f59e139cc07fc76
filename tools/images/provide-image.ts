import { hash } from "node:crypto";
import { createReadStream, existsSync, readFileSync, realpathSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { request, type IncomingMessage } from "node:http";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { text } from "node:stream/consumers";
import { runOk, systemPath } from "../../src/kit/exec.ts";
import { javaTrustStore } from "../../src/sandbox/java-trust-store.ts";
import { recipes, type Recipe } from "./recipes.ts";

/** The names of the images that can be created: `debian`, `node` … */
export const imageNames: readonly string[] = Object.keys(recipes);

/**
 * Loads one of Berth's parent images into an engine as `berth-parent/<name>:<digest of its recipe>` and resolves with that name. The first
 * time on a machine, creates it from Debian's packages, which takes 10 to 60 seconds; later uses the cached archive.
 */
export async function provideImage(socketPath: string, name: string): Promise<string> {
  const recipe = recipes[name];
  if (recipe === undefined) throw new Error(`no parent image is called ${name}: there are ${imageNames.join(", ")}`);
  const key = keyOf(recipe);
  const tag = `berth-parent/${name}:${key}`;
  if (await hasImage(socketPath, tag)) return tag;
  await importArchive(socketPath, await archiveOf(recipe, join(cacheDir(), `${name}-${key}.tar`)), { tag, recipe });
  return tag;
}

/** Outside of the checkout, so that a fresh one need not create the images again. */
function cacheDir(): string {
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  return join(cache, "berth", "images");
}

const finisher = join(import.meta.dirname, "finish-root.sh");
const certificates = "/etc/ssl/certs/ca-certificates.crt";

function keyOf(recipe: Recipe): string {
  const parts = [recipe, readFileSync(finisher, "utf8"), readFileSync(certificates, "utf8")];
  const node = recipe.node ? [process.version, npmDir()] : [];
  return hash("sha256", JSON.stringify([process.arch, ...parts, ...node])).slice(0, 12);
}

/** Two processes may create it at once; each moves a complete archive into place. */
async function archiveOf(recipe: Recipe, archive: string): Promise<string> {
  if (existsSync(archive)) return archive;
  await mkdir(dirname(archive), { recursive: true });
  const made = `${archive}.${process.pid}.tar`;
  // `extract` ends before it would run a customize hook, so use its own.
  const hook = `--${recipe.variant === "extract" ? "extract" : "customize"}-hook=${finisher} "$1"`;
  // Otherwise dpkg would sync each file to the disk, although only the finished archive matters.
  const unsynced = "--dpkgopt=force-unsafe-io";
  const skip = ["--skip=output/dev", "--skip=check/empty", "--quiet", unsynced];
  const args = [
    `--variant=${recipe.variant}`,
    ...skip,
    `--include=${recipe.packages.join(",")}`,
    hook,
    ...(recipe.java ? [`--customize-hook=cp "$TRUST_STORE" "$1/etc/ssl/certs/java/cacerts"`] : []),
    "bookworm",
    made,
  ];
  const node = recipe.node ? { NODE_BIN: process.execPath, NPM_DIR: npmDir() } : {};
  const trustStore = `${made}.jks`;
  try {
    if (recipe.java) await writeFile(trustStore, javaTrustStore(readFileSync(certificates, "utf8")));
    await runOk(
      { file: "mmdebstrap", args },
      { env: { PATH: systemPath, TRUST_STORE: trustStore, ...node }, timeoutMs: 900_000 },
    );
    await rename(made, archive);
  } finally {
    await rm(made, { force: true });
    await rm(trustStore, { force: true });
  }
  return archive;
}

function npmDir(): string {
  const folders = (process.env["PATH"] ?? systemPath).split(delimiter);
  const npm = folders.map((folder) => join(folder, "npm")).find((file) => existsSync(file));
  if (npm === undefined) throw new Error("there is no npm to put into an image");
  return dirname(dirname(realpathSync(npm)));
}

async function hasImage(socketPath: string, tag: string): Promise<boolean> {
  const response = await call(socketPath, { method: "GET", path: `/images/${tag}/json` });
  response.body.resume();
  return response.status === 200;
}

async function importArchive(socketPath: string, archive: string, { tag, recipe }: { tag: string; recipe: Recipe }) {
  const [repo = "", version = ""] = tag.split(":");
  const query = new URLSearchParams({ fromSrc: "-", repo, tag: version });
  for (const change of recipe.changes) query.append("changes", change);
  const { body } = await call(socketPath, { method: "POST", path: `/images/create?${query.toString()}` }, archive);
  const answer = await text(body);
  if (!answer.includes('"sha256:')) throw new Error(`the engine did not take the image ${tag}: ${answer.trim()}`);
}

async function call(socketPath: string, { method, path }: { method: string; path: string }, archive?: string) {
  const asked = request({ socketPath, method, path, headers: { "content-type": "application/x-tar" } });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    asked.once("response", resolve).once("error", reject);
  });
  if (archive === undefined) asked.end();
  else await pipeline(createReadStream(archive), asked);
  const body = await answered;
  return { status: body.statusCode ?? 0, body };
}
