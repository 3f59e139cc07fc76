import type { FastifyInstance, FastifyRequest } from "fastify";
import { limits } from "../contract/limits.ts";
import { Refused } from "../features/context.ts";
import { addressKey } from "../kit/address-key.ts";
import type { PipelineOptions } from "./exchange.ts";
import { answerTo } from "./errors.ts";
import { findHook, receiveHook, type Hook } from "../features/follow/follow.ts";
import type { RateLimiter } from "./rate-limiter.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The follow that a delivery is for. */
    hook: Hook | undefined;
  }
}

export type Hooks = Pick<PipelineOptions, "platform" | "limiter" | "log">;

type HookRequest = FastifyRequest<{ Params: { id: string }; Body: Buffer | undefined }>;

/** Adds the endpoints that receive webhooks of followed repositories, which are authenticated by the delivery's signature. */
export function addHooks(app: FastifyInstance, { platform, limiter, log }: Hooks): void {
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    // Not parsed, because the signature covers the raw bytes.
    const parser = { parseAs: "buffer", bodyLimit: limits.hook_body_bytes } as const;
    scope.addContentTypeParser("*", parser, async (_: FastifyRequest, bytes: Buffer) => bytes);
    scope.setErrorHandler((error, request, reply) => {
      const { status, headers, body, kind } = answerTo(error);
      if (kind === "fault") log.error({ request_id: request.id, err: error }, "could not store a delivery");
      return reply.code(status).headers(headers).send(body);
    });
    scope.decorateRequest("hook");
    // Before the body is read, and only ids that exist are counted: neither megabytes nor made-up ids of strangers fill the memory.
    scope.addHook("onRequest", async (request) => {
      const { id } = (request as HookRequest).params;
      request.hook = await findHook(platform, id);
      if (request.hook === undefined) throw refuse(limiter, request, new Refused("not_found"));
      const { refused } = limiter.count("writesPerMinute", `hook ${id}`);
      if (refused !== undefined) throw refused;
    });
    scope.post("/hooks/:id", async (request: HookRequest, reply) => {
      const { headers, body = Buffer.alloc(0) } = request;
      const answer = await receiveHook(platform, request.hook as Hook, { headers, body });
      if (answer.outcome === "waiting") return reply.code(202).send(answer);
      if (answer.outcome === "ignored") return reply.code(200).send(answer);
      throw refuse(limiter, request, new Refused("unauthorized", { error: answer.reason ?? "" }));
    });
  });
}

/** Counts only unauthenticated requests against the address: one git host sends the deliveries of many projects from it. */
function refuse(limiter: RateLimiter, { clientAddress }: FastifyRequest, refusal: Refused): Refused {
  return limiter.count("refusedPerMinute", `hook ${addressKey(clientAddress)}`).refused ?? refusal;
}
