import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { mayDecide } from "../contract/access.ts";
import { routes } from "../contract/routes.ts";
import { Refused, type Caller, type HandlerPlatform } from "../features/context.ts";
import type { Log } from "../kit/log.ts";
import {
  decisionContent,
  noticeContent,
  pageHeaders,
  renderContent,
  type Notice,
  type PageContent,
} from "./decision-html.ts";
import { meansOf, signOptionsFor } from "./decision-proof.ts";
import { answerTo } from "./errors.ts";
import * as approvals from "../features/approvals/approvals.ts";
import { isFromThisPage, isNonce, makeNonce, readOnlyForms } from "./own-form.ts";
import { reviewHtml } from "./review-html.ts";
import { sessionOf } from "./sign-in.ts";

export interface DecisionPage {
  readonly platform: HandlerPlatform;
  readonly log: Log;
  /** Tells who is signed in to the dashboard in the browser that sent a request. */
  readonly signIn: Parameters<typeof sessionOf>[0];
  /** Returns the dashboard's font faces as CSS; empty while there is no bundle. */
  readonly fonts: () => string;
}

type DecisionRequest = FastifyRequest<{ Params: { link: string }; Body: unknown }>;
type SessionRequest = FastifyRequest<{ Params: { id: string }; Body: unknown }>;

const linkPath = "/decide/:link";
/** Below the path that the cookie of a session is sent to. */
const sessionPath = "/session/decide/:id";

/**
 * Adds the page that decides a request, outside the API: plain HTML that works without a script. Anyone who has the link of an approval may
 * decide, once; so may an owner who is signed in. Opening the page changes nothing, because mail scanners open every link; a decision is a
 * POST from the page itself.
 */
export function addDecisionPage(app: FastifyInstance, page: DecisionPage): void {
  void app.register(async (scope) => {
    readOnlyForms(scope);
    scope.setErrorHandler((error, request, reply) => {
      const { status, kind } = answerTo(error);
      if (kind === "fault") page.log.error({ request_id: request.id, err: error }, "the page of a decision failed");
      return send(page, reply, status < 500 ? 400 : status, noticeContent(status < 500 ? "malformed" : "fault"));
    });
    const byLink = ({ params: { link } }: DecisionRequest) => ({ link });
    scope.get(linkPath, (request: DecisionRequest, reply) => show(page, byLink(request), reply));
    scope.post(linkPath, (request: DecisionRequest, reply) => choose(page, byLink(request), { request, reply }));
    scope.get(sessionPath, async (request: SessionRequest, reply) => {
      const decider = await signedIn(page, request);
      return decider === undefined ? refuseSignedOut(page, reply) : show(page, decider, reply);
    });
    scope.post(sessionPath, async (request: SessionRequest, reply) => {
      const decider = await signedIn(page, request);
      return decider === undefined ? refuseSignedOut(page, reply) : choose(page, decider, { request, reply });
    });
  });
}

type SignedIn = { readonly id: string; readonly caller: Caller };
type Person = { readonly link: string } | SignedIn;

async function signedIn(page: DecisionPage, request: SessionRequest): Promise<SignedIn | undefined> {
  const caller = await sessionOf(page.signIn, request);
  return caller && { id: request.params.id, caller };
}

const refuseSignedOut = (page: DecisionPage, reply: FastifyReply) =>
  send(page, reply, 401, noticeContent("signed_out", true));

async function show(page: DecisionPage, person: Person, reply: FastifyReply, problem?: string): Promise<FastifyReply> {
  const { platform } = page;
  const isSignedIn = "caller" in person;
  const found = await approvals.openDecision(platform.db, person, platform.clock.now());
  if (found === undefined) return send(page, reply, 404, noticeContent("unknown", isSignedIn));
  if (!mayChoose(person, found)) return send(page, reply, 403, noticeContent("not_yours", true));
  const { status, route, target, org_id, project_id } = found.approval;
  if (!found.isOpen) return send(page, reply, 410, noticeContent(notices[status] ?? "expired", isSignedIn));
  const words = approvals.wordsOf(route);
  const affected =
    project_id === null
      ? null
      : await approvals.touchedBy(platform, { org_id, project_id }, { touches: words?.touches ?? [], target });
  const effect = words?.effect({ target, detail: found.request.detail });
  const nonce = makeNonce(platform, nonceKey(person));
  const sign = isSignedIn ? await signOptionsFor(siteOf(page), person.caller, person.id) : null;
  const looked = await approvals.reviewOf(platform, found.approval);
  const review = looked === null ? "" : reviewHtml({ ...looked, project: found.approval.project, nonce });
  const shown = { ...found, affected, effect, review, nonce, isSignedIn, sign, problem };
  return send(page, reply, problem === undefined ? 200 : 403, decisionContent(shown));
}

/** Returns whether this person may decide. The link is proof enough. */
function mayChoose(person: Person, { approval }: approvals.Decision): boolean {
  const row = routes.find(({ name }) => name === approval.route);
  return !("caller" in person) || (row !== undefined && mayDecide(person.caller, row));
}

interface Submitted {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** Lets what waits for a decision run on a copy of the data first; the decision stays open. */
async function rehearse(page: DecisionPage, person: Person, { request, reply }: Submitted): Promise<FastifyReply> {
  const { db, clock, wakeups } = page.platform;
  const found = await approvals.openDecision(db, person, clock.now());
  if (found?.isOpen === true && mayChoose(person, found))
    await approvals.rehearsePromotion(db, wakeups, found.approval);
  return reply.redirect(request.url, 303);
}

async function choose(page: DecisionPage, person: Person, submitted: Submitted): Promise<FastifyReply> {
  const { request, reply } = submitted;
  const { platform } = page;
  const { choice, nonce = "", signature = "" } = (request.body ?? {}) as Readonly<Record<string, string>>;
  const isSignedIn = "caller" in person;
  const refuse = (status: number, notice: Notice) => send(page, reply, status, noticeContent(notice, isSignedIn));
  const isOwn = isFromThisPage(request, platform.addresses.controlUrl);
  if (!isOwn || !isNonce(platform, nonceKey(person), nonce)) return refuse(403, "elsewhere");
  if (choice === "rehearse") return rehearse(page, person, submitted);
  if (choice !== "approved" && choice !== "denied") return refuse(400, "malformed");
  const found = await approvals.openDecision(platform.db, person, platform.clock.now());
  if (found !== undefined && !mayChoose(person, found)) return refuse(403, "not_yours");
  let means: Parameters<typeof approvals.decide>[3] = "link";
  if ("caller" in person)
    try {
      means = await meansOf(siteOf(page), person.caller, { approval: person.id, choice, signature });
    } catch (error) {
      if (error instanceof Refused) return show(page, person, reply, error.message);
      throw error;
    }
  const { outcome } = await approvals.decide(platform, person, choice, means);
  if (outcome === "unknown") return refuse(404, "unknown");
  if (outcome === "too_late") return refuse(410, "expired");
  return refuse(200, choice);
}

const siteOf = ({ platform }: DecisionPage) => ({
  db: platform.db,
  vault: platform.vault,
  controlUrl: platform.addresses.controlUrl,
});

/** What a nonce is valid for: this link, or this token's session on this request. */
function nonceKey(person: Person): string {
  return "link" in person ? person.link : `${person.id} ${person.caller.token_id}`;
}

const notices: Readonly<Record<string, Notice>> = { approved: "used", denied: "used", consumed: "used" };

function send(page: DecisionPage, reply: FastifyReply, status: number, content: PageContent): FastifyReply {
  const fonts = page.fonts();
  return reply
    .code(status)
    .headers(pageHeaders(fonts))
    .type("text/html; charset=utf-8")
    .send(renderContent(content, fonts));
}
