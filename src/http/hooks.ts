import type { FastifyInstance, FastifyRequest } from "fastify";
import { limits } from "../contract/limits.ts";
import { Refused, type HandlerPlatform } from "../features/context.ts";
import { addressKey } from "../kit/address-key.ts";
import type { Log } from "../kit/log.ts";
import { answerTo } from "./errors.ts";
import { receiveHook } from "./handlers.ts";
import type { RateLimiter } from "./rate-limiter.ts";

export interface Hooks {
  readonly platform: HandlerPlatform;
  readonly limiter: RateLimiter;
  readonly log: Log;
}

type HookRequest = FastifyRequest<{ Params: { id: string }; Body: Buffer | undefined }>;

/**
 * Adds the endpoints that receive webhooks of followed repositories, outside the API. They are authenticated by the delivery's signature,
 * not by a token.
 */
export function addHooks(app: FastifyInstance, { platform, limiter, log }: Hooks): void {
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    // Not parsed, because the signature covers the raw bytes.
    const parser = { parseAs: "buffer", bodyLimit: limits.hook_body_bytes } as const;
    scope.addContentTypeParser("*", parser, async (_: FastifyRequest, bytes: Buffer) => bytes);
    scope.setErrorHandler((error, request, reply) => {
      const { status, headers, body, kind } = answerTo(error);
      if (kind === "fault") log.error({ request_id: request.id, err: error }, "a delivery could not be taken");
      return reply.code(status).headers(headers).send(body);
    });
    scope.post("/hooks/:id", async (request: HookRequest, reply) => {
      const { id } = request.params;
      const hook = limiter.count("writesPerMinute", `hook ${id}`);
      if (hook.refused !== undefined) throw hook.refused;
      const { headers, body = Buffer.alloc(0) } = request;
      const answer = await receiveHook(platform, id, { headers, body });
      if (answer.outcome === "waiting") return reply.code(202).send(answer);
      if (answer.outcome === "ignored") return reply.code(200).send(answer);
      // Only unauthenticated requests count against the address: one git host sends the deliveries of many projects from it.
      const { refused } = limiter.count("refusedPerMinute", `hook ${addressKey(request.clientAddress)}`);
      if (refused !== undefined) throw refused;
      if (answer.outcome === "unknown") throw new Refused("not_found");
      throw new Refused("unauthorized", { error: answer.reason ?? "" });
    });
  });
}
