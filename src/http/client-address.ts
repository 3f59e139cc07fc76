import { timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { callbackify } from "node:util";
import type { FastifyInstance, FastifyRequest } from "fastify";

declare module "fastify" {
  interface FastifyRequest {
    /** The client's address. For a request through the platform's own edge, the one that the edge reports. */
    clientAddress: string;
  }
}

/** Returns the headers that the platform's own edge adds to requests for the control plane; null while they are unknown. */
export type EdgeHeaders = () => Promise<Readonly<Record<string, string>> | null>;

/** Returns the address of a request's client. Trusts forwarding headers only together with the edge's own headers. */
export type AddressOf = (headers: IncomingHttpHeaders, socketAddress: string) => Promise<string>;

export function createClientAddress(edgeHeaders: EdgeHeaders): AddressOf {
  let known: Readonly<Record<string, string>> | null = null;
  return async (headers, socketAddress) => {
    const forwarded = headers["x-forwarded-for"];
    if (typeof forwarded !== "string") return socketAddress;
    known ??= await edgeHeaders().catch(() => null);
    return known !== null && carries(headers, known) ? forwarded : socketAddress;
  };
}

/** Sets `clientAddress` on every request. */
export function addClientAddress(app: FastifyInstance, addressOf: AddressOf): void {
  app.decorateRequest("clientAddress", "");
  const setForwarded = callbackify(async (request: FastifyRequest) => {
    request.clientAddress = await addressOf(request.headers, request.ip);
  });
  // Without a promise for the requests that no proxy forwarded.
  app.addHook("onRequest", (request, _, done) => {
    if (request.headers["x-forwarded-for"] !== undefined)
      return setForwarded(request, (error) => done(error ?? undefined));
    request.clientAddress = request.ip;
    done();
  });
}

function carries(headers: IncomingHttpHeaders, wanted: Readonly<Record<string, string>>): boolean {
  const pairs = Object.entries(wanted);
  return pairs.length > 0 && pairs.every(([name, value]) => isEqual(String(headers[name] ?? ""), value));
}

function isEqual(one: string, other: string): boolean {
  const [given, own] = [Buffer.from(one), Buffer.from(other)];
  return given.length === own.length && timingSafeEqual(given, own);
}
