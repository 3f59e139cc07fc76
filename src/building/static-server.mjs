// Serves a folder of static files: `static-server.mjs <folder> [--fallback=index.html]`, on $HOST:$PORT.
// It is copied into releases and runs with nothing but Node's own modules, on any supported version of Node.
import { createHash } from "node:crypto";
import { open, readFile, realpath, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { extname, join, resolve, sep } from "node:path";

// An `import` of node:http looks at all of its exports, and with them loads a client that nobody wants: 35 ms and its memory.
const { createServer } = createRequire(import.meta.url)("node:http");

const types = {
  ".html": "text/html; charset=utf-8",
  ".htm": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".map": "application/json; charset=utf-8",
  ".webmanifest": "application/manifest+json; charset=utf-8",
  ".xml": "application/xml; charset=utf-8",
  ".txt": "text/plain; charset=utf-8",
  ".md": "text/markdown; charset=utf-8",
  ".csv": "text/csv; charset=utf-8",
  ".ics": "text/calendar; charset=utf-8",
  ".svg": "image/svg+xml; charset=utf-8",
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
  ".webp": "image/webp",
  ".avif": "image/avif",
  ".ico": "image/x-icon",
  ".bmp": "image/bmp",
  ".woff": "font/woff",
  ".woff2": "font/woff2",
  ".ttf": "font/ttf",
  ".otf": "font/otf",
  ".wasm": "application/wasm",
  ".pdf": "application/pdf",
  ".zip": "application/zip",
  ".gz": "application/gzip",
  ".mp3": "audio/mpeg",
  ".ogg": "audio/ogg",
  ".wav": "audio/wav",
  ".m4a": "audio/mp4",
  ".mp4": "video/mp4",
  ".webm": "video/webm",
  ".mov": "video/quicktime",
  ".rss": "application/rss+xml; charset=utf-8",
};
// What bundlers write: app.3f2a9c1b.js, assets/index-BxK3_9aZ.css. Their content never changes under the same name.
const hashedName =
  /[.-](?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,64}(?:\.\w+)+$|\/(?:assets|_astro|immutable)\/.*[.-](?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{8}\.\w+$/;
const largestHashedBytes = 16 * 1024 * 1024;
const encodings = [
  ["br", ".br"],
  ["gzip", ".gz"],
];
const stopAfterMs = 8000;

const folder = await realpath(resolve(process.argv[2] ?? "."));
const fallback = process.argv.find((arg) => arg.startsWith("--fallback="))?.slice("--fallback=".length);
const tags = new Map();
const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(`${request.method} ${request.url}: ${error.message}`);
    if (response.headersSent) response.destroy();
    else send(response, 500, "Internal server error\n");
  });
});
server.keepAliveTimeout = 75_000;
server.listen(Number(process.env.PORT ?? 8080), process.env.HOST ?? "0.0.0.0", () =>
  console.log(`serving static files on port ${server.address().port}`),
);
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.once(signal, () => {
    server.close(() => process.exit(0));
    server.closeIdleConnections();
    setTimeout(() => process.exit(0), stopAfterMs).unref();
  });
}

async function answer(request, response) {
  if (request.method !== "GET" && request.method !== "HEAD")
    return send(response, 405, "Method not allowed\n", { allow: "GET, HEAD" });
  const path = pathOf(request.url);
  if (path === null) return send(response, 400, "Bad request\n");
  const found = await find(path);
  if (found?.redirect) return send(response, 308, "", { location: found.redirect + queryOf(request.url) });
  if (found) return sendFile(request, response, found, 200);
  return sendMissing(request, response, path);
}

/** The decoded path, or null for one that is malformed or tries to leave the folder. */
function pathOf(url) {
  try {
    const path = decodeURIComponent(url.split(/[?#]/, 1)[0]);
    if (!path.startsWith("/") || path.includes("\0") || path.includes("\\") || path.split("/").includes(".."))
      return null;
    return path;
  } catch {
    return null;
  }
}

/** Only ever a path on this host: `//example.org` would be another one. */
function queryOf(url) {
  const at = url.indexOf("?");
  return at === -1 ? "" : url.slice(at);
}

async function find(path) {
  // Files that begin with a dot are not for visitors (.env, .git), but for the well-known folder of RFC 8615.
  if (path.split("/").some((part) => part.startsWith(".") && part !== ".well-known")) return null;
  const whole = await look(path);
  if (whole?.stats.isFile()) return path.endsWith("/") ? null : whole;
  if (whole?.stats.isDirectory()) {
    const index = await look(join(path, "index.html"));
    if (index?.stats.isFile())
      return path.endsWith("/") ? index : { redirect: encodeURI(`/${path.replace(/^\/+/, "")}/`) };
  }
  const page = path.endsWith("/") || extname(path) !== "" ? null : await look(`${path}.html`);
  return page?.stats.isFile() ? page : null;
}

/** The file or folder behind a path. Links are followed only inside the folder. */
async function look(path) {
  try {
    const file = await realpath(join(folder, path));
    if (file !== folder && !file.startsWith(folder + sep)) return null;
    return { file, stats: await stat(file) };
  } catch {
    return null;
  }
}

async function sendMissing(request, response, path) {
  const wantsPage =
    (request.headers.accept ?? "").includes("text/html") ||
    request.headers.accept === undefined ||
    request.headers.accept === "*/*";
  const index = fallback !== undefined && wantsPage && extname(path) === "" ? await look(`/${fallback}`) : null;
  if (index) return sendFile(request, response, index, 200);
  const page = await look("/404.html");
  if (page) return sendFile(request, response, page, 404);
  return send(response, 404, "Not found\n");
}

async function sendFile(request, response, found, status) {
  const headers = await headersOf(found);
  if (status === 200 && isFresh(request, headers)) return response.writeHead(304, headers).end();
  const range = status === 200 ? rangeOf(request, headers, found.stats.size) : null;
  if (range === "unsatisfiable") return send(response, 416, "", { "content-range": `bytes */${found.stats.size}` });
  if (range) {
    const size = range.end - range.start + 1;
    response.writeHead(206, {
      ...headers,
      "content-range": `bytes ${range.start}-${range.end}/${found.stats.size}`,
      "content-length": size,
    });
    return stream(request, response, found.file, range);
  }
  const packed = await packedVersion(request, found.file);
  const size = packed ? packed.size : found.stats.size;
  response.writeHead(status, { ...headers, ...(packed ? packed.headers : {}), "content-length": size });
  return stream(request, response, packed ? packed.file : found.file, null);
}

async function headersOf({ file, stats }) {
  const type = types[extname(file).toLowerCase()] ?? "application/octet-stream";
  return {
    "content-type": type,
    etag: `W/"${await tagOf(file, stats)}"`,
    "last-modified": stats.mtime.toUTCString(),
    "cache-control":
      hashedName.test(file) && !type.startsWith("text/html")
        ? "public, max-age=31536000, immutable"
        : "public, max-age=0, must-revalidate",
    "accept-ranges": "bytes",
    "x-content-type-options": "nosniff",
    vary: "accept-encoding",
  };
}

/** Made of the content, so that all replicas and later deployments of an unchanged file agree. A release's files never change. */
async function tagOf(file, stats) {
  if (stats.size > largestHashedBytes) return `${stats.size.toString(36)}-${Math.floor(stats.mtimeMs).toString(36)}`;
  if (!tags.has(file))
    tags.set(
      file,
      createHash("sha256")
        .update(await readFile(file))
        .digest("base64url")
        .slice(0, 22),
    );
  return tags.get(file);
}

/** RFC 9110 §13.1: If-None-Match decides alone when it is there. */
function isFresh(request, headers) {
  const tags = request.headers["if-none-match"];
  if (tags !== undefined) return tags === "*" || tags.split(",").some((tag) => tag.trim() === headers.etag);
  const since = Date.parse(request.headers["if-modified-since"] ?? "");
  return !Number.isNaN(since) && Date.parse(headers["last-modified"]) <= since;
}

/** One range of bytes (RFC 9110 §14); several at once, or one under a condition that no longer holds, give the whole file. */
function rangeOf(request, headers, size) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? "");
  if (!match || (match[1] === "" && match[2] === "")) return null;
  const condition = request.headers["if-range"];
  if (condition !== undefined && condition !== headers["last-modified"]) return null;
  const start = match[1] === "" ? Math.max(0, size - Number(match[2])) : Number(match[1]);
  const end = match[1] === "" || match[2] === "" ? size - 1 : Math.min(Number(match[2]), size - 1);
  return start > end || start >= size ? "unsatisfiable" : { start, end };
}

/** A compressed version that the build put beside the file. */
async function packedVersion(request, file) {
  const accepted = (request.headers["accept-encoding"] ?? "").split(",").map((each) => each.trim().split(";")[0]);
  for (const [encoding, ending] of encodings) {
    if (!accepted.includes(encoding)) continue;
    const stats = await stat(file + ending).catch(() => null);
    if (stats?.isFile()) return { file: file + ending, size: stats.size, headers: { "content-encoding": encoding } };
  }
  return null;
}

async function stream(request, response, file, range) {
  if (request.method === "HEAD") return response.end();
  const source = (await open(file, "r")).createReadStream(range ?? {});
  source.on("error", () => response.destroy());
  response.on("close", () => source.destroy());
  source.pipe(response);
}

function send(response, status, text, headers = {}) {
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    ...headers,
  });
  response.end(response.req.method === "HEAD" ? undefined : text);
}
