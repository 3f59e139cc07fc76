import type { FastifyReply, FastifyRequest } from "fastify";
import { authenticate } from "./admit.ts";
import type { PipelineOptions } from "./exchange.ts";

/**
 * Creates the check of a row whose bodies may be larger than `usualBytes`. Before such a body is read, it asks for a valid token and counts the
 * bodies of the organization: they are in memory until they are answered, and strangers could fill it.
 */
export function createLargeBodyCheck(options: PipelineOptions, usualBytes: number) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (declaredBytes(request) <= usualBytes) return;
    const caller = await authenticate(options, { token: bearerOf(request), address: request.clientAddress });
    const close = options.largeBodies.open(caller.org_id);
    if (reply.raw.destroyed) close();
    else reply.raw.once("close", close);
  };
}

/** Returns the token that the request's header carries; undefined when it carries none. */
export function bearerOf({ headers }: Pick<FastifyRequest, "headers">): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1];
}

function declaredBytes({ headers }: FastifyRequest): number {
  return headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : Infinity;
}
