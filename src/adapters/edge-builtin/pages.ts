import type { IncomingMessage, ServerResponse } from "node:http";
import { pages, renderPage, type PageCode } from "../../ports/edge-pages.ts";

const lingerMs = 5000;

/** Sends a page in the format the client prefers. Never reveals where an application runs. */
export function sendPage(request: IncomingMessage, response: ServerResponse, code: PageCode, notice?: string): number {
  const { headers, body } = renderPage(code, request.headers.accept ?? "", notice);
  // Set the reason phrase explicitly: a response of the application that Node refused may have left its own.
  response.writeHead(pages[code].status, pages[code].title, headers);
  response.end(body);
  // A client that gets this page while it still sends reads it only if the rest of its body is read too, for a while.
  if (code === "body_too_large") setTimeout(() => request.complete || request.socket.destroy(), lingerMs).unref();
  return pages[code].status;
}

/** Returns the page as bytes for a bare socket, which must be closed after it. */
export function rawPage(code: PageCode, accept = "", notice?: string): string {
  const { headers, body } = renderPage(code, accept, notice);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${pages[code].status} ${pages[code].title}\r\n${lines.join("")}connection: close\r\n\r\n${body}`;
}

/** Returns a redirect as bytes for a bare socket, which must be closed after it. */
export function redirectHead(headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 308 Permanent Redirect\r\n${lines.join("")}content-length: 0\r\nconnection: close\r\n\r\n`;
}

/** Returns the status code of a page. */
export function pageStatus(code: PageCode): number {
  return pages[code].status;
}
