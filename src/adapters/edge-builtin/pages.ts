import type { IncomingMessage, ServerResponse } from "node:http";
import { pages, renderPage, type PageCode } from "../../ports/edge-pages.ts";

/** Answers with a page in the form the client prefers. Never says where an application runs. */
export function sendPage(request: IncomingMessage, response: ServerResponse, code: PageCode, notice?: string): number {
  const { headers, body } = renderPage(code, request.headers.accept ?? "", notice);
  // With its reason: a refused answer of the application may have left its own.
  response.writeHead(pages[code].status, pages[code].title, headers);
  response.end(body);
  return pages[code].status;
}

/** The same as bytes for a bare socket, after which it is to be closed. */
export function rawPage(code: PageCode, accept = "", notice?: string): string {
  const { headers, body } = renderPage(code, accept, notice);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${pages[code].status} ${pages[code].title}\r\n${lines.join("")}connection: close\r\n\r\n${body}`;
}

/** A redirect as bytes for a bare socket, after which it is to be closed. */
export function redirectHead(headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 308 Permanent Redirect\r\n${lines.join("")}content-length: 0\r\nconnection: close\r\n\r\n`;
}

/** The status a page carries. */
export function pageStatus(code: PageCode): number {
  return pages[code].status;
}
