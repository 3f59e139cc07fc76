import type { FastifyRequest } from "fastify";
import { isForwarded } from "./forward.ts";
import { hostnameOf, isLocal } from "./head-check.ts";

/**
 * Returns the platform's address as the request used it, without a slash at its end: clients refuse a server that names itself otherwise
 * than the address that a person gave them.
 */
export function addressOf({ headers }: Pick<FastifyRequest, "headers">, controlUrl: string): string {
  const own = new URL(controlUrl);
  const host = headers.host ?? own.host;
  const isOther = host !== own.host && isLocal(hostnameOf(host)) && !isForwarded(headers);
  return isOther ? `http://${host}` : own.origin;
}

export const resourceMetadataPath = "/.well-known/oauth-protected-resource/mcp";
