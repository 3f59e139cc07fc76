import { timingSafeEqual } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";

declare module "fastify" {
  interface FastifyRequest {
    /** The client's; of a request that came over the platform's own edge the one that the edge names. */
    clientAddress: string;
  }
}

/** The headers that the platform's own edge adds to requests for the control plane; null while it is not known. */
export type EdgeHeaders = () => Promise<Readonly<Record<string, string>> | null>;

/** Gives every request its client's address. Forwarding fields are believed only beside the edge's own headers. */
export function addClientAddress(app: FastifyInstance, edgeHeaders: EdgeHeaders): void {
  let known: Readonly<Record<string, string>> | null = null;
  app.decorateRequest("clientAddress", "");
  app.addHook("onRequest", async (request) => {
    const forwarded = request.headers["x-forwarded-for"];
    request.clientAddress = request.ip;
    if (typeof forwarded !== "string") return;
    known ??= await edgeHeaders().catch(() => null);
    if (known !== null && carries(request, known)) request.clientAddress = forwarded;
  });
}

function carries({ headers }: FastifyRequest, wanted: Readonly<Record<string, string>>): boolean {
  const pairs = Object.entries(wanted);
  return pairs.length > 0 && pairs.every(([name, value]) => isEqual(String(headers[name] ?? ""), value));
}

function isEqual(one: string, other: string): boolean {
  const [given, own] = [Buffer.from(one), Buffer.from(other)];
  return given.length === own.length && timingSafeEqual(given, own);
}
