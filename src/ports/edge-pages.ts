// What a visitor reads where no application answers.
import { firstPush } from "../contract/first-push.ts";
import { plainPageStyle } from "../contract/plain-page.ts";

/** Identifies one of the edge's own pages; sent as `x-berth-error`. */
export type PageCode = keyof typeof pages;

interface Page {
  readonly status: number;
  readonly title: string;
  readonly text: string;
  readonly retryAfterS?: number;
}

/** Every page that an edge serves itself. All adapters serve the same ones. */
export const pages = {
  bad_request: { status: 400, title: "Bad request", text: "This request is malformed or ambiguous." },
  unknown_host: { status: 404, title: "Nothing here", text: "No application answers to this host name." },
  nothing_deployed: {
    status: 404,
    title: "Nothing deployed yet",
    text: `This project exists but has no deployment. Commit your application and run \`${firstPush}\`.`,
  },
  method_not_allowed: { status: 405, title: "Method not allowed", text: "This server is not a forward proxy." },
  request_timeout: { status: 408, title: "Request timeout", text: "The request took too long to arrive. Try again." },
  body_too_large: {
    status: 413,
    title: "Request body too large",
    text: "The request's body is larger than this server accepts. Send less in one request.",
  },
  not_implemented: { status: 501, title: "Not implemented", text: "The only transfer coding supported is 'chunked'." },
  app_not_running: {
    status: 503,
    title: "Application not running",
    text: "The application has no running instance: it is starting, or it has ended. Try again in a few seconds.",
    retryAfterS: 5,
  },
  asleep: {
    status: 503,
    title: "Application asleep",
    text: "The application was asleep and did not start in time. Try again in a few seconds.",
    retryAfterS: 5,
  },
  app_unreachable: {
    status: 502,
    title: "Application unreachable",
    text: "The application does not accept connections. Try again in a few seconds.",
    retryAfterS: 5,
  },
  app_bad_response: {
    status: 502,
    title: "Bad response",
    text: "The application closed the connection or sent no valid answer. Try again in a few seconds.",
    retryAfterS: 5,
  },
  app_busy: {
    status: 503,
    title: "Too many open requests",
    text: "The application has as many open requests as one application may have. Try again in a moment.",
    retryAfterS: 1,
  },
  deleted: { status: 503, title: "Not available", text: "This application was deleted.", retryAfterS: 3600 },
  suspended: { status: 503, title: "Not available", text: "This application is suspended.", retryAfterS: 3600 },
  maintenance: {
    status: 503,
    title: "Down for maintenance",
    text: "This application is down for maintenance. Try again in a few minutes.",
    retryAfterS: 120,
  },
  app_timeout: {
    status: 504,
    title: "Application timeout",
    text: "The application did not answer in time. Try again in a minute.",
    retryAfterS: 60,
  },
} as const satisfies Record<string, Page>;

/** Returns the headers and body of a page in the format that `Accept` prefers, with `notice` in place of its text. */
export function renderPage(
  code: PageCode,
  accept: string,
  notice?: string,
): { headers: Record<string, string | number>; body: string } {
  const page: Page = notice === undefined ? pages[code] : { ...pages[code], text: notice };
  const [type, body] = write(code, page, accept);
  const headers: Record<string, string | number> = {
    "content-type": type,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-berth-error": code,
  };
  if (page.retryAfterS !== undefined) headers["retry-after"] = page.retryAfterS;
  return { headers, body };
}

function write(code: PageCode, page: Page, accept: string): [type: string, body: string] {
  if (accept.includes("text/html")) return ["text/html; charset=utf-8", html(page)];
  if (accept.includes("json")) return ["application/json", `${JSON.stringify({ error: page.text, code })}\n`];
  return ["text/plain; charset=utf-8", `${page.status} ${page.title}\n${page.text}\n`];
}

const style = `${plainPageStyle}.status{margin-bottom:.25rem;font:500 13px/1.6 "Geist Mono Variable","Geist Mono",ui-monospace,Menlo,Consolas,"Liberation Mono",monospace}`;

function html(page: Page): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${page.title}</title>
<style>${style}</style></head>
<body><p class="status">${page.status}</p><h1>${page.title}</h1><p>${withCommands(escapeHtml(page.text))}</p></body></html>
`;
}

/** Renders what stands between backticks as code. */
function withCommands(html: string): string {
  return html.replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}

export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
