import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Refused, type HandlerPlatform } from "../features/context.ts";
import type { Log } from "../kit/log.ts";
import { decisionHtml, noticeHtml, pageHeaders, type Notice } from "./decision-html.ts";
import { answerTo } from "./errors.ts";
import { affectedBy, decide, openDecision } from "./handlers.ts";

/** What the decision page depends on. */
export interface DecisionPage {
  readonly platform: HandlerPlatform;
  readonly log: Log;
}

type DecisionRequest = FastifyRequest<{ Params: { link: string }; Body: unknown }>;

const path = "/decide/:link";
const mostFormBytes = 4096;

/**
 * Adds the page behind an approval's link, outside the API: plain HTML that works without a script. Anyone who has the link may decide,
 * once. Opening the page changes nothing, because mail scanners open every link; a decision is a POST from the page itself.
 */
export function addDecisionPage(app: FastifyInstance, page: DecisionPage): void {
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    const parser = { parseAs: "string", bodyLimit: mostFormBytes } as const;
    scope.addContentTypeParser(
      "application/x-www-form-urlencoded",
      parser,
      async (_: FastifyRequest, text: string | Buffer) => readForm(text.toString()),
    );
    scope.setErrorHandler((error, request, reply) => {
      const { status, kind } = answerTo(error);
      if (kind === "fault") page.log.error({ request_id: request.id, err: error }, "the page of a decision failed");
      return send(reply, status < 500 ? 400 : status, noticeHtml(status < 500 ? "malformed" : "fault"));
    });
    scope.get(path, (request: DecisionRequest, reply) => show(page, request, reply));
    scope.post(path, (request: DecisionRequest, reply) => choose(page, request, reply));
  });
}

/** Parses a form's fields. Refuses a repeated field: one parser could use the first value and another the last. */
function readForm(text: string): Readonly<Record<string, string>> {
  const fields = [...new URLSearchParams(text)];
  const form = Object.fromEntries(fields);
  if (Object.keys(form).length !== fields.length) throw new Refused("invalid_request");
  return form;
}

async function show(
  { platform }: DecisionPage,
  { params }: DecisionRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const found = await openDecision(platform.db, params.link, platform.clock.now());
  if (found === undefined) return send(reply, 404, noticeHtml("unknown"));
  if (!found.isOpen) return send(reply, 410, noticeHtml(noticeOf(found.approval.status)));
  const { org_id, project_id } = found.approval;
  const affected = project_id === null ? null : await affectedBy(platform, { org_id, project_id });
  return send(reply, 200, decisionHtml({ ...found, affected, nonce: makeNonce(platform, params.link) }));
}

async function choose(
  { platform }: DecisionPage,
  request: DecisionRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { choice, nonce = "" } = (request.body ?? {}) as { readonly choice?: string; readonly nonce?: string };
  const { link } = request.params;
  const isOwn = isFromThisPage(request, platform.addresses.controlUrl);
  if (!isOwn || !isNonce(platform, link, nonce)) return send(reply, 403, noticeHtml("elsewhere"));
  if (choice !== "approved" && choice !== "denied") return send(reply, 400, noticeHtml("malformed"));
  const { outcome } = await decide(platform, link, choice);
  if (outcome === "unknown") return send(reply, 404, noticeHtml("unknown"));
  if (outcome === "too_late") return send(reply, 410, noticeHtml("expired"));
  return send(reply, 200, noticeHtml(choice));
}

const notices: Readonly<Record<string, Notice>> = { approved: "used", denied: "used", consumed: "used" };

function noticeOf(status: string): Notice {
  return notices[status] ?? "expired";
}

/**
 * Returns whether the form was sent from this page, by the `Origin` that browsers send. Through a tunnel or a proxy, the origin is the host
 * that the browser requested.
 */
function isFromThisPage({ headers }: FastifyRequest, controlUrl: string): boolean {
  // Sent by a browser that prefers the header's referrer policy over the page's. No page of another site can send `same-origin`.
  if (headers.origin === "null") return headers["sec-fetch-site"] === "same-origin";
  const origin = URL.parse(headers.origin ?? "");
  return origin !== null && (origin.origin === new URL(controlUrl).origin || origin.host === headers.host);
}

const nonceName = "decision nonce";
const nonceMs = 60 * 60 * 1000;

/**
 * Creates a nonce that is valid for an hour and for this link. It is sealed, so only this platform can create one, and none needs to be
 * stored.
 */
function makeNonce({ vault, clock }: HandlerPlatform, link: string): string {
  return vault.seal(link, nonceName, String(clock.now().getTime() + nonceMs)).toString("base64url");
}

function isNonce({ vault, clock }: HandlerPlatform, link: string, nonce: string): boolean {
  try {
    return Number(vault.open(link, nonceName, Buffer.from(nonce, "base64url"))) > clock.now().getTime();
  } catch {
    return false;
  }
}

function send(reply: FastifyReply, status: number, html: string): FastifyReply {
  return reply.code(status).headers(pageHeaders).type("text/html; charset=utf-8").send(html);
}
