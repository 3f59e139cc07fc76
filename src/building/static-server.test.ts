import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { request, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { after, before, describe, it } from "node:test";
import { start } from "../kit/exec.ts";

let root: string;
let port: number;
let stop: () => void;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "berth-static-"));
  const site = join(root, "site");
  await mkdir(join(site, "docs"), { recursive: true });
  await mkdir(join(site, "assets"));
  await mkdir(join(site, ".well-known"));
  const files = {
    "index.html": "home",
    "about.html": "about",
    "docs/index.html": "docs",
    "a b.txt": "0123456789",
    "app.3f2a9c1b.js": "1",
    "assets/index-D64VDMd1.css": "2",
    "assets/my-Portrait.css": "3",
    ".env": "secret",
    ".well-known/security.txt": "contact",
    "big.css": "body {}",
  };
  for (const [name, content] of Object.entries(files)) await writeFile(join(site, name), content);
  await writeFile(join(site, "big.css.gz"), gzipSync("body {}"));
  await writeFile(join(root, "outside.txt"), "outside");
  await symlink("../outside.txt", join(site, "link.txt"));
  await mkdir(join(root, "site-other"));
  await writeFile(join(root, "site-other", "page.html"), "other");
  await symlink("../site-other", join(site, "other"));
  ({ port, stop } = await serve(site));
});
after(async () => {
  stop();
  await rm(root, { recursive: true, force: true });
});

async function serve(site: string, ...options: string[]): Promise<{ port: number; stop: () => void }> {
  const script = join(import.meta.dirname, "static-server.mjs");
  const child = start(
    { file: process.execPath, args: [script, site, ...options] },
    { env: { PORT: "0", HOST: "127.0.0.1" } },
  );
  const line = await new Promise<string>((resolve) =>
    child.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString())),
  );
  return { port: Number(/port (\d+)/.exec(line)?.[1]), stop: () => void child.kill("SIGKILL") };
}

/** Sends a request with this path unchanged. */
async function get(path: string, headers: Record<string, string> = {}, method = "GET", at = port) {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ host: "127.0.0.1", port: at, path, headers, method }, resolve).on("error", reject).end();
  });
  return { status: response.statusCode, headers: response.headers, text: await text(response) };
}

describe("the static server", () => {
  it("answers files, folders' index pages and pages without their ending", async () => {
    assert.equal((await get("/")).text, "home");
    assert.equal((await get("/docs/")).text, "docs");
    assert.equal((await get("/about")).text, "about");
    assert.equal((await get("/a%20b.txt?x=1")).text, "0123456789");
    assert.equal((await get("/.well-known/security.txt")).text, "contact");
    assert.equal((await get("/")).headers["content-type"], "text/html; charset=utf-8");
  });

  it("sends a folder without its slash to the one with it, on this host only", async () => {
    assert.equal((await get("/docs?a=b")).headers.location, "/docs/?a=b");
    const odd = await get("//docs");
    assert.ok(odd.headers.location === undefined || !odd.headers.location.startsWith("//"));
  });

  it("never leaves its folder", async () => {
    for (const path of [
      "/../outside.txt",
      "/%2e%2e/outside.txt",
      "/docs/..%2f..%2foutside.txt",
      "/link.txt",
      "/other/page.html",
      "/..%5coutside.txt",
      "/%00",
      "/%zz",
      "/.env",
    ]) {
      const answer = await get(path);
      assert.ok([400, 404].includes(answer.status as number), `${path}: ${answer.status}`);
      assert.ok(!/outside|secret/.test(answer.text));
    }
  });

  it("answers 304 for what the browser has", async () => {
    const { headers } = await get("/");
    assert.equal((await get("/", { "if-none-match": headers.etag as string })).status, 304);
    assert.equal((await get("/", { "if-none-match": 'W/"other"' })).status, 200);
    assert.equal((await get("/", { "if-modified-since": headers["last-modified"] as string })).status, 304);
  });

  it("answers ranges", async () => {
    const answer = await get("/a%20b.txt", { range: "bytes=2-4" });
    assert.deepEqual([answer.status, answer.text, answer.headers["content-range"]], [206, "234", "bytes 2-4/10"]);
    assert.equal((await get("/a%20b.txt", { range: "bytes=-3" })).text, "789");
    assert.equal((await get("/a%20b.txt", { range: "bytes=20-" })).status, 416);
  });

  it("HEAD has the headers of GET and no body; other methods are refused", async () => {
    const head = await get("/a%20b.txt", {}, "HEAD");
    assert.deepEqual([head.status, head.headers["content-length"], head.text], [200, "10", ""]);
    assert.equal((await get("/", {}, "POST")).status, 405);
  });

  it("lets hashed files be kept for ever and everything else be asked for", async () => {
    const cached = async (path: string) => (await get(path)).headers["cache-control"]?.includes("immutable");
    assert.equal(await cached("/app.3f2a9c1b.js"), true);
    assert.equal(await cached("/assets/index-D64VDMd1.css"), true);
    assert.equal(await cached("/assets/my-Portrait.css"), false);
    assert.equal(await cached("/"), false);
  });

  it("sends what the build compressed to those who take it", async () => {
    const packed = await get("/big.css", { "accept-encoding": "gzip" });
    assert.equal(packed.headers["content-encoding"], "gzip");
    assert.equal(packed.headers["content-type"], "text/css; charset=utf-8");
    assert.equal((await get("/big.css")).text, "body {}");
  });

  it("answers unknown pages with index.html only where that is asked for, and never for files", async () => {
    assert.equal((await get("/unknown")).status, 404);
    const spa = await serve(join(root, "site"), "--fallback=index.html");
    try {
      assert.equal((await get("/unknown/page", { accept: "text/html" }, "GET", spa.port)).text, "home");
      assert.equal((await get("/unknown.js", { accept: "*/*" }, "GET", spa.port)).status, 404);
      assert.equal((await get("/api/x", { accept: "application/json" }, "GET", spa.port)).status, 404);
    } finally {
      spa.stop();
    }
  });
});
