import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { limits } from "../contract/limits.ts";
import { Refused, type Caller } from "../features/context.ts";
import { addressKey } from "../kit/address-key.ts";
import { visible } from "../kit/visible.ts";
import { againPage, chosenIn, codeContent, consentContent, resultContent, wrongContent } from "./consent-html.ts";
import { pageHeaders, renderContent, type PageContent } from "./decision-html.ts";
import { answerTo } from "./errors.ts";
import * as programs from "../features/programs/programs.ts";
import type { DecisionPage } from "./decision-page.ts";
import { issuerOf } from "./oauth-address.ts";
import { isFromThisPage, isNonce, makeNonce, readForm, readOnlyForms } from "./own-form.ts";
import { sessionOf } from "./sign-in.ts";

export type ConsentPage = DecisionPage;

type Form = Readonly<Record<string, string | undefined>>;
type PageRequest = FastifyRequest<{ Body: Form | undefined }>;

interface Exchange {
  readonly request: PageRequest;
  readonly reply: FastifyReply;
}

/**
 * Adds the pages on which a person connects a program: `/session/authorize`, where a program sends the person's browser, and
 * `/session/device`, where the person types the code that a program shows. They are below the path of the session's cookie, and work without
 * a script. Opening one changes nothing.
 */
export function addConsentPage(app: FastifyInstance, page: ConsentPage): void {
  void app.register(async (scope) => {
    readOnlyForms(scope);
    scope.setErrorHandler((error, request, reply) => {
      const { status, kind, body } = answerTo(error);
      if (kind === "fault") page.log.error({ request_id: request.id, err: error }, "the page of a consent failed");
      const content = status < 500 ? wrongContent(body.error) : resultContent("fault");
      return send(page, { reply, status, content });
    });
    scope.get("/session/authorize", (request, reply) =>
      showAuthorize(page, { request: request as PageRequest, reply }),
    );
    scope.post("/session/authorize", (request: PageRequest, reply) => decideAuthorize(page, { request, reply }));
    scope.get("/session/device", async (request, reply) => {
      const caller = await sessionOf(page.signIn, request);
      if (caller === undefined) return askToSignIn(page, { request: request as PageRequest, reply });
      return send(page, { reply, status: 200, content: codeContent(makeNonce(page.platform, deviceKey(caller))) });
    });
    scope.post("/session/device", (request: PageRequest, reply) => decideCode(page, { request, reply }));
  });
}

/** A program's request whose redirect is one of its own. */
interface Asked {
  readonly client: programs.Client;
  readonly redirect: string;
  readonly query: Form;
}

/** Reads a program's request. An error before the redirect is known to be the program's is shown, and leads nowhere. */
async function readAsked({ platform }: ConsentPage, { url }: FastifyRequest): Promise<Asked> {
  const query: Form = readForm(url.split("?")[1] ?? "");
  const { client_id = "", redirect_uri = "" } = query;
  const client = await programs.findClient(platform, client_id);
  if (client === undefined)
    throw new Refused("invalid_request", {
      error: client_id.startsWith("https://")
        ? `This server could not read the program's description at ${visible(client_id.slice(0, 200))}. Connect the program again: for the next hour, programs are asked to register here instead. If it does not, let the server reach that address, or give the program a token.`
        : "The program is not registered here, or no longer. Connect it again from its own settings.",
    });
  if (!client.redirect_uris.some((one) => programs.isSameRedirect(one, redirect_uri)))
    throw new Refused("invalid_request", {
      error: "The program asks for an answer at an address that is not its own.",
    });
  return { client, redirect: redirect_uri, query };
}

/** Returns the error of RFC 6749 in a program's request, with a sentence; undefined when it is right. */
function faultOf({ client, query }: Asked, address: string): readonly [code: string, sentence: string] | undefined {
  const { response_type, code_challenge_method, code_challenge = "", resource } = query;
  if (response_type !== "code")
    return ["unsupported_response_type", "The program asks for another kind of answer than a code."];
  if (code_challenge_method !== "S256" || !/^[\w-]{43}$/.test(code_challenge))
    return ["invalid_request", "The program does not protect its code (PKCE with S256)."];
  const own = client.id === programs.commandLine.id ? [] : [`${address}/mcp`];
  if (resource !== undefined && ![...own, address, `${address}/`].includes(resource))
    return ["invalid_target", `The program asks for access to another address than ${address}/mcp.`];
  return undefined;
}

function answerUrl(page: ConsentPage, { request }: Exchange, { redirect, query }: Asked, answer: Form): string {
  const url = new URL(redirect);
  const iss = issuerOf(request, query["issuer"], page.platform.addresses.controlUrl);
  for (const [name, value] of Object.entries({ ...answer, state: query["state"], iss }))
    if (value !== undefined) url.searchParams.set(name, value);
  return url.href;
}

/** Returns the request, or undefined after it was answered with what is wrong. */
async function validAsked(page: ConsentPage, exchange: Exchange): Promise<Asked | undefined> {
  const asked = await readAsked(page, exchange.request);
  const { controlUrl } = page.platform.addresses;
  const fault = faultOf(asked, issuerOf(exchange.request, asked.query["issuer"], controlUrl));
  if (fault === undefined) return asked;
  const [error, error_description] = fault;
  // Not redirected: anybody can register a program, and a link to this platform must not lead to their site without a click.
  const back = {
    url: answerUrl(page, exchange, asked, { error, error_description }),
    name: programs.receiverOf(asked.redirect).name,
  };
  await send(page, { reply: exchange.reply, status: 400, content: wrongContent(error_description, back) });
  return undefined;
}

async function showAuthorize(page: ConsentPage, exchange: Exchange): Promise<FastifyReply> {
  const caller = await sessionOf(page.signIn, exchange.request);
  if (caller === undefined) return askToSignIn(page, exchange);
  const asked = await validAsked(page, exchange);
  return asked === undefined ? exchange.reply : consent(page, exchange, { ...asked, caller });
}

interface Asking {
  /** The caller of the session. */
  readonly caller: Caller;
  /** Its organization, or the one that the person chose. */
  readonly organization: string | undefined;
  readonly client: programs.Client;
  readonly device: string;
  readonly redirect: string | null;
  readonly nonceKey: string;
  readonly problem: string | undefined;
  readonly userCode?: string;
  /** The path of the page, to come back to. */
  readonly path: string;
}

const consent = (
  page: ConsentPage,
  { request, reply }: Exchange,
  asking: Asked & { caller: Caller; problem?: string; organization?: string | undefined },
) =>
  askFor(page, reply, {
    ...{ problem: undefined, organization: undefined, ...asking },
    device: programs.shownName(asking.query["device_name"]),
    nonceKey: authorizeKey(asking.caller, request),
    path: request.url,
  });

async function askFor(
  page: ConsentPage,
  reply: FastifyReply,
  { redirect, nonceKey, client, device, path, organization, ...asking }: Asking,
) {
  const { db } = page.platform;
  const caller = await requireCallerIn(page, asking.caller, organization);
  const reason = programs.whyNotConnect(caller);
  if (reason !== undefined) return send(page, { reply, status: 403, content: wrongContent(reason) });
  const isCommandLine = client.id === programs.commandLine.id;
  const content = consentContent({
    ...asking,
    caller,
    organizations: await programs.organizationsToChoose(db, asking.caller),
    isCommandLine,
    proof: programs.hasProof(asking.caller) ? null : signInAndReturnTo(path),
    describedBy: client.id.startsWith("https://") ? new URL(client.id).host : null,
    program: isCommandLine ? "berth on ".concat(device || "a computer") : client.name,
    receiver: redirect === null ? null : programs.receiverOf(redirect),
    projects: await programs.projectsToChoose(db, caller),
    nonce: makeNonce(page.platform, nonceKey),
  });
  return send(page, {
    reply,
    status: asking.problem === undefined ? 200 : 400,
    content,
    ...(redirect && { redirect }),
  });
}

async function requireCallerIn({ platform }: ConsentPage, caller: Caller, organization: string | undefined) {
  const found = await programs.callerIn(platform.db, caller, organization);
  if (found !== undefined) return found;
  throw new Refused("forbidden", { error: "You are not a member of this organization, or no longer." });
}

/** Returns the organization of whose button was pressed; undefined for another button. */
function newlyChosen({ choice }: Form): string | undefined {
  return choice?.startsWith(chosenIn) ? choice.slice(chosenIn.length) : undefined;
}

/** What a form is valid for: this session, and exactly this request of a program. */
const authorizeKey = ({ token_id }: Caller, { url }: FastifyRequest) => `authorize ${token_id} ${url}`;
const deviceKey = ({ token_id }: Caller) => `device ${token_id}`;

async function decideAuthorize(page: ConsentPage, exchange: Exchange): Promise<FastifyReply> {
  const { request, reply } = exchange;
  const { platform } = page;
  const form = request.body ?? {};
  const caller = await sessionOf(page.signIn, request);
  if (caller === undefined) return askToSignIn(page, exchange);
  if (
    !isFromThisPage(request, platform.addresses.controlUrl) ||
    !isNonce(platform, authorizeKey(caller, request), form["nonce"] ?? "")
  )
    return send(page, { reply, status: 403, content: resultContent("elsewhere") });
  const asked = await validAsked(page, exchange);
  if (asked === undefined) return reply;
  const { organization } = form;
  const other = newlyChosen(form);
  if (other !== undefined) return consent(page, exchange, { ...asked, caller, organization: other });
  if (form["choice"] !== "allow") return leave(reply, answerUrl(page, exchange, asked, { error: "access_denied" }));
  const choice = choiceOf(form);
  if (typeof choice === "string") return consent(page, exchange, { ...asked, caller, organization, problem: choice });
  const { client, redirect: redirect_uri, query } = asked;
  const challenge = query["code_challenge"] ?? "";
  const code = await programs.issueCode(
    platform,
    await requireCallerIn(page, caller, organization),
    { client, redirect_uri, challenge, device: programs.shownName(query["device_name"]) },
    choice,
  );
  return leave(reply, answerUrl(page, exchange, asked, { code }));
}

function leave(reply: FastifyReply, url: string): FastifyReply {
  return reply
    .code(303)
    .headers({ location: url, "cache-control": "no-store", "referrer-policy": "no-referrer" })
    .send();
}

/** Returns what a person chose, or what is wrong with it. */
function choiceOf(form: Form): programs.Choice | string {
  const named = Object.keys(form).flatMap((name) =>
    name.startsWith("project.") ? [name.slice("project.".length)] : [],
  );
  const isAll = form["reach"] === "all";
  if (!isAll && named.length === 0) return "Choose at least one project.";
  if (named.length > limits.projects_of_token) return `Choose at most ${limits.projects_of_token} projects.`;
  const isOn = (name: string) => form[name] === "on";
  return {
    projects: isAll ? null : named,
    read_only: isOn("read_only"),
    approval_mode: isOn("approval_mode"),
    platform_admin: isOn("platform_admin"),
    days: [7, 30, 90].find((days) => String(days) === form["days"]) ?? 90,
  };
}

async function decideCode(page: ConsentPage, { request, reply }: Exchange) {
  const { platform } = page;
  const form = request.body ?? {};
  const { user_code: typed = "", choice: button } = form;
  const other = newlyChosen(form);
  const caller = await sessionOf(page.signIn, request);
  if (caller === undefined) return askToSignIn(page, { request, reply });
  const isOwn = isFromThisPage(request, platform.addresses.controlUrl);
  const key = button === "open" ? deviceKey(caller) : `${deviceKey(caller)} ${typed}`;
  if (!isOwn || !isNonce(platform, key, form["nonce"] ?? ""))
    return send(page, { reply, status: 403, content: resultContent("elsewhere") });
  if (button === "open") await programs.limitTyped(platform, addressKey(request.clientAddress));
  const unknown = "This code is not known, was used, or has expired. Start the login again.";
  const again = () =>
    send(page, { reply, status: 404, content: codeContent(makeNonce(platform, deviceKey(caller)), unknown) });
  const choice = button === "allow" ? choiceOf(form) : null;
  if (button === "open" || other !== undefined || typeof choice === "string") {
    const device = await programs.openDevice(platform, caller, typed);
    if (device === undefined) return again();
    const problem = typeof choice === "string" ? choice : undefined;
    const asking = {
      caller,
      client: programs.commandLine,
      device: device.device,
      redirect: null,
      problem,
      userCode: typed,
    };
    const organization = other ?? form["organization"];
    const nonceKey = `${deviceKey(caller)} ${typed}`;
    return askFor(page, reply, { ...asking, organization, path: request.url, nonceKey });
  }
  const inChosen = await requireCallerIn(page, caller, form["organization"]);
  if (!(await programs.decideDevice(platform, inChosen, typed, choice))) return again();
  return send(page, { reply, status: 200, content: resultContent(choice === null ? "denied" : "allowed") });
}

const again = "again=1";

/** Leads through the sign-in and back. First the page loads itself once: the cookie does not arrive when another site links here. */
function askToSignIn(_: ConsentPage, { request, reply }: Exchange): FastifyReply {
  const [path = "", query = ""] = request.url.split("?");
  const parts = query.split("&").filter((part) => part !== "" && part !== again);
  const isAgain = query.split("&").includes(again);
  reply.headers({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
  if (request.method === "GET" && !isAgain)
    return reply.type("text/html; charset=utf-8").send(againPage(`${path}?${[...parts, again].join("&")}`));
  const next = parts.length === 0 ? path : `${path}?${parts.join("&")}`;
  return reply.redirect(signInAndReturnTo(next), 303);
}

const signInAndReturnTo = (path: string) => `/sign-in?next=${encodeURIComponent(path)}`;

interface Sending {
  readonly reply: FastifyReply;
  readonly status: number;
  readonly content: PageContent;
  /** Where a form's answer may lead. */
  readonly redirect?: string;
}

function send({ fonts }: ConsentPage, { reply, status, content, redirect }: Sending): FastifyReply {
  const faces = fonts();
  const url = redirect === undefined ? undefined : new URL(redirect);
  // Browsers apply `form-action` to redirects, too.
  const answers = url === undefined ? "" : ` ${url.origin === "null" ? url.protocol : url.origin}`;
  return reply
    .code(status)
    .headers(pageHeaders(faces, answers))
    .type("text/html; charset=utf-8")
    .send(renderContent(content, faces));
}
