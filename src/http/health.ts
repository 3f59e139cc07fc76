import { readVersion } from "../kit/own-version.ts";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

export interface ReadyCheck {
  readonly name: string;
  /** Resolves with null when all is well, otherwise with a sentence for the operator without addresses and secrets. */
  readonly check: () => Promise<string | null>;
}

export interface CheckResult {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string | null;
}

const checkTimeoutMs = 3000;

/** Adds `GET /healthz` (the process responds) and `GET /readyz` (every part of its roles works; otherwise 503 and the list). */
export function addHealth(app: FastifyInstance, checks: readonly ReadyCheck[], roles: readonly string[]): void {
  const running = readVersion();
  app.get("/healthz", (_request: FastifyRequest, reply: FastifyReply) => answer(reply, 200, { status: "ok" }));
  app.get("/readyz", async (_request: FastifyRequest, reply: FastifyReply) => {
    const results = await Promise.all(checks.map(runCheck));
    const ready = results.every((result) => result.ok);
    return answer(reply, ready ? 200 : 503, {
      status: ready ? "ready" : "not_ready",
      ...running,
      roles,
      checks: results,
    });
  });
}

async function runCheck({ name, check }: ReadyCheck): Promise<CheckResult> {
  const late = new Promise<string>((resolve) => setTimeout(resolve, checkTimeoutMs, "It does not answer.").unref());
  const detail = await Promise.race([check(), late]).catch(() => "It failed; the log says why.");
  return { name, ok: detail === null, detail };
}

function answer(reply: FastifyReply, status: number, body: object): FastifyReply {
  if (status === 503) reply.header("retry-after", "2");
  return reply.code(status).type("application/json; charset=utf-8").send(JSON.stringify(body));
}
