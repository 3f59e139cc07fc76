import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";

/** Returns a sentence that says what is wrong with a request's head; undefined when nothing is. */
export type CheckHead = (request: Pick<IncomingMessage, "rawHeaders" | "httpVersion">) => string | undefined;

/**
 * Creates a check that refuses a request without `Host`, a repeated `Host` or `Authorization`, which a proxy and this server could read
 * differently, and any host that is not this control plane's. Otherwise a foreign site could point its own name here (DNS rebinding) and
 * call the API from a visitor's browser.
 */
export function createHeadCheck(hostnames: readonly string[]): CheckHead {
  const own = new Set(hostnames.map((name) => name.toLowerCase()));
  return ({ rawHeaders, httpVersion }) => {
    const hosts = valuesOf(rawHeaders, "host");
    if (hosts.length > 1) return "The request has more than one Host field: send one.";
    if (valuesOf(rawHeaders, "authorization").length > 1)
      return "The request has more than one Authorization field: send one.";
    const [host] = hosts;
    // HTTP/1.0 may omit it, and browsers do not use HTTP/1.0.
    if (host === undefined) return httpVersion === "1.0" ? undefined : "The request has no Host field: send one.";
    if (isOwn(hostnameOf(host), own)) return undefined;
    return "This control plane does not answer to the host name of the request. Use the name in BERTH_HOST or its address.";
  };
}

function isOwn(hostname: string, own: ReadonlySet<string>): boolean {
  return isLocal(hostname) || own.has(hostname) || hostname.endsWith(".localhost");
}

/** Returns whether it is `localhost` or an IP address. */
export function isLocal(hostname: string): boolean {
  return hostname === "localhost" || isIP(hostname) > 0;
}

/** Returns the host in lower case without port and brackets. */
export function hostnameOf(host: string): string {
  return host
    .replace(/:\d*$/, "")
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();
}

function valuesOf(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const field = rawHeaders[at] as string;
    if (field.length === name.length && field.toLowerCase() === name) values.push(rawHeaders[at + 1] as string);
  }
  return values;
}
