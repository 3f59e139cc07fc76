import { createHash } from "node:crypto";
import { plainPageStyle } from "../contract/plain-page.ts";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

/** The dashboard's bundle, in memory. */
export interface DashboardBundle {
  /** Files by path, such as `/assets/main-1a2b.js`; `/index.html` is the page. */
  readonly files: ReadonlyMap<string, DashboardFile>;
}

export interface DashboardFile {
  readonly bytes: Buffer;
  /** The content compressed; undefined when that saves nothing. */
  readonly gzip: Buffer | undefined;
  readonly type: string;
}

/** The bundle, or `building` or `failed` while there is none. */
export type BundleState = DashboardBundle | "building" | "failed";

/** Sends the dashboard's page to a browser that requests it; undefined for requests that are not the dashboard's. */
export type ServePage = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | undefined;

/** Serves the dashboard's files. The returned function serves the page, the response for every path without another route. */
export function addDashboard(app: FastifyInstance, bundle: () => BundleState): ServePage {
  app.get("/assets/*", (request, reply) => {
    const state = bundle();
    const file = typeof state === "string" ? undefined : state.files.get(request.url.split("?")[0] ?? "");
    if (file === undefined) return reply.callNotFound();
    // Cacheable for good: the file name contains a hash of the content.
    return send(request, reply.header("cache-control", "public, max-age=31536000, immutable"), file);
  });
  return (request, reply) => (asksForPage(request) ? sendPage(bundle(), request, reply) : undefined);
}

/** Returns the font faces of the bundle as CSS, for pages that use its fonts without its styles; empty while there is no bundle. */
export function fontFaces(state: BundleState): string {
  const paths = typeof state === "string" ? [] : [...state.files.keys()];
  return paths.map((path) => (fontFile.test(path) ? fontFace(path) : "")).join("");
}

const fontFile = /^\/assets\/geist-(?:mono-)?latin-wght-normal-[\w-]+\.woff2$/;

function fontFace(path: string): string {
  const family = path.includes("-mono-") ? "Geist Mono Variable" : "Geist Variable";
  return `@font-face{font-family:"${family}";font-display:swap;font-weight:100 900;src:url(${path}) format("woff2")}`;
}

const foreignPath = /^\/(?:v1|git|assets|session|decide)(?:[/?]|$)/;

function asksForPage({ method, url, headers }: FastifyRequest): boolean {
  const isRead = method === "GET" || method === "HEAD";
  // The bare address has no other answer, so it is the page for curl, too.
  const isHome = /^\/(?:\?|$)/.test(url);
  return isRead && !foreignPath.test(url) && (isHome || (headers.accept ?? "").includes("text/html"));
}

function sendPage(state: BundleState, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const page = typeof state === "string" ? undefined : state.files.get("/index.html");
  if (page === undefined) return sendWaitPage(state === "failed" ? "failed" : "building", reply);
  // The page of a sign-in link asks first if the person came from another site; scripts can't read this header of their own request.
  const site = /^[a-z-]+$/.exec(String(request.headers["sec-fetch-site"]))?.[0];
  if (site !== undefined) reply.header("server-timing", `site;desc="${site}"`);
  return send(request, reply.headers(pageHeaders(page.bytes.toString())).header("cache-control", "no-store"), page);
}

function send(request: FastifyRequest, reply: FastifyReply, { bytes, gzip, type }: DashboardFile): FastifyReply {
  const takesGzip = gzip !== undefined && /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? ""));
  if (takesGzip) reply.header("content-encoding", "gzip");
  return reply
    .headers({ vary: "accept-encoding", "x-content-type-options": "nosniff" })
    .type(type)
    .send(takesGzip ? gzip : bytes);
}

const closedDoors = {
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

/** Everything is loaded from this origin; the page's one inline script (the theme, before the first paint) is allowed by its hash. */
function pageHeaders(html: string): Record<string, string> {
  const hashes = [...html.matchAll(/<script>([^<]*)<\/script>/g)].map(([, text]) => sha256(text ?? ""));
  const policy = [
    "default-src 'none'",
    ["script-src 'self'", ...hashes].join(" "),
    "style-src 'self'",
    "font-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return { ...closedDoors, "content-security-policy": policy.join("; ") };
}

function sha256(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

const waitTexts = {
  building: "The dashboard is being prepared. This page opens by itself in a moment.",
  failed: "The dashboard could not be prepared; the platform's log says why. The API and the command line work.",
};

function sendWaitPage(why: "building" | "failed", reply: FastifyReply): FastifyReply {
  const style = plainPageStyle;
  const html = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Berth</title><style>${style}</style><h1>Berth</h1><p>${waitTexts[why]}</p></html>\n`;
  const policy = `default-src 'none'; style-src ${sha256(style)}; frame-ancestors 'none'`;
  if (why === "building") reply.header("refresh", "1");
  return reply
    .code(503)
    .headers({ ...closedDoors, "content-security-policy": policy, "cache-control": "no-store", "retry-after": "1" })
    .type("text/html; charset=utf-8")
    .send(html);
}
