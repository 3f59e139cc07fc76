import type { FastifyRequest } from "fastify";
import { isForwarded } from "./forward.ts";
import { hostnameOf, isLocal } from "./head-check.ts";

type Asking = Pick<FastifyRequest, "headers">;

/** Returns the platform's address as the request used it, without a final slash: clients refuse a server with another name. */
export function addressOf({ headers }: Asking, controlUrl: string): string {
  const own = new URL(controlUrl);
  const host = headers.host ?? own.host;
  const isOther = host !== own.host && isLocal(hostnameOf(host)) && !isForwarded(headers);
  return isOther ? `http://${host}` : own.origin;
}

/**
 * Returns where people consent: passkeys and sessions belong to `localhost`, so a program that uses 127.0.0.1 sends people there, and
 * `issuer` keeps the name under which it knows the platform.
 */
export function consentUrl(request: Asking, controlUrl: string): string {
  const address = addressOf(request, controlUrl);
  if (address !== otherNameOf(controlUrl)) return `${address}/session/authorize`;
  return `${new URL(controlUrl).origin}/session/authorize?issuer=${encodeURIComponent(address)}`;
}

/**
 * Returns the name under which a program knows the platform. By a foreign one, also of another program on the person's computer, it could
 * send the code there (RFC 9207).
 */
export function issuerOf(request: Asking, given: string | undefined, controlUrl: string): string {
  return given !== undefined && given === otherNameOf(controlUrl) ? given : addressOf(request, controlUrl);
}

/** Returns the second name of a platform on the person's own computer. The port is the platform's, so nothing else answers there. */
function otherNameOf(controlUrl: string): string | undefined {
  const own = new URL(controlUrl);
  return own.hostname === "localhost" ? own.origin.replace("localhost", "127.0.0.1") : undefined;
}

export const resourceMetadataPath = "/.well-known/oauth-protected-resource/mcp";
