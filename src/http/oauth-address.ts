import type { FastifyRequest } from "fastify";
import { isForwarded } from "./forward.ts";
import { hostnameOf, isLocal } from "./head-check.ts";

/** Returns the platform's address as the request used it, without a final slash: clients refuse a server with another name. */
export function addressOf({ headers }: Pick<FastifyRequest, "headers">, controlUrl: string): string {
  const own = new URL(controlUrl);
  const host = headers.host ?? own.host;
  const isOther = host !== own.host && isLocal(hostnameOf(host)) && !isForwarded(headers);
  return isOther ? `http://${host}` : own.origin;
}

/**
 * Returns where people consent. Passkeys and sessions belong to the platform's own address, so a program on this machine that uses another one, such as
 * 127.0.0.1 instead of localhost, sends them there; `issuer` keeps the name under which it knows the platform.
 */
export function consentUrl(request: Pick<FastifyRequest, "headers">, controlUrl: string): string {
  const [address, own] = [addressOf(request, controlUrl), new URL(controlUrl)];
  const isReached = own.hostname === "localhost" || !isLocal(hostnameOf(own.hostname));
  if (address === own.origin || !isReached || !isLoopback(address)) return `${address}/session/authorize`;
  return `${own.origin}/session/authorize?issuer=${encodeURIComponent(address)}`;
}

/** Returns the name under which a program knows the platform: by a foreign one it could send the code elsewhere (RFC 9207). */
export function issuerOf(
  request: Pick<FastifyRequest, "headers">,
  given: string | undefined,
  controlUrl: string,
): string {
  const url = URL.parse(given ?? "");
  const isOwn = given !== undefined && url?.origin === given && isLoopback(given);
  return isOwn ? given : addressOf(request, controlUrl);
}

const isLoopback = (address: string) => /^http:\/\/(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/.test(address);

export const resourceMetadataPath = "/.well-known/oauth-protected-resource/mcp";
