import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "../contract/client.ts";
import { plainPageStyle } from "../contract/plain-page.ts";
import { browse } from "./browse.ts";
import type { CliContext } from "./context.ts";
import { CliError } from "./failures.ts";
import { oneLine } from "./render/text.ts";

const clientId = "berth-cli";
const waitMs = 10 * 60_000;
const hintAfterMs = 60_000;

/** Logs in by consent in a browser here or, with a code, anywhere. Returns the token; undefined if the platform has no page for that. */
export async function logIn(ctx: CliContext, url: string, way: "browser" | "device"): Promise<string | undefined> {
  const { body } = await send(ctx, `${url}/.well-known/oauth-authorization-server`);
  const { issuer, authorization_endpoint: page } = body as Partial<Record<string, unknown>>;
  if (typeof issuer !== "string" || typeof page !== "string") return undefined;
  if (way === "device") return byCode(ctx, url);
  for (const named of [issuer, page]) requireOwn(url, named);
  return inBrowser(ctx, url, { issuer, page });
}

/**
 * Refuses a platform that sends people to another one's page: it would get their consent there, and with it a token of the other (RFC 8414,
 * section 3.3). A platform on this computer has two names, and a proxy may serve it over HTTPS.
 */
function requireOwn(url: string, named: string): void {
  const [own, other] = [new URL(url).host, URL.parse(named)?.host];
  if (own === other || (isLoopback(url) && other === own.replace("127.0.0.1", "localhost"))) return;
  throw new CliError("unauthorized", "not_logged_in", {
    message: `${own} asks for a login at another platform${other === undefined ? "" : `, ${other}`}.`,
    hint: "Log in at the address of the platform itself.",
  });
}

export function isLoopback(url: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(new URL(url).hostname);
}

interface Consent {
  /** What the platform calls itself. */
  readonly issuer: string;
  /** Where people consent. */
  readonly page: string;
}

async function inBrowser(ctx: CliContext, url: string, { issuer, page }: Consent): Promise<string> {
  const [verifier, state] = [randomBytes(32).toString("base64url"), randomBytes(16).toString("base64url")];
  const listener = await listen(state);
  const redirect_uri = `http://127.0.0.1:${listener.port}/callback`;
  const asked = new URL(page);
  const query = {
    ...{ response_type: "code", client_id: clientId, redirect_uri, state, code_challenge_method: "S256" },
    ...{
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      device_name: ctx.environment.hostname,
    },
  };
  for (const [name, value] of Object.entries(query)) asked.searchParams.set(name, value);
  ctx.output.note((paint) => `Allow the login in your browser. If it does not open:\n${paint.dim(asked.href)}`);
  const hint = setTimeout(
    () => ctx.output.note(() => "Still waiting. Without a browser here: berth login <url> --device"),
    hintAfterMs,
  );
  try {
    await browse(ctx, asked.href);
    const answer = await Promise.race([listener.answer, ended(ctx.signal)]);
    // Another server's answer must not be exchanged here (RFC 9207).
    if (answer.get("iss") !== issuer) throw refused("The answer came from another platform.");
    const code = answer.get("code");
    if (code === null) throw refused("The login was not allowed.");
    const form = { grant_type: "authorization_code", code, client_id: clientId, redirect_uri, code_verifier: verifier };
    return tokenOf(await send(ctx, `${url}/oauth/token`, form));
  } finally {
    clearTimeout(hint);
    listener.close();
  }
}

const donePage = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Berth</title><style>${plainPageStyle}</style></head>
<body><h1>Back to the terminal</h1><p>You can close this page.</p></body></html>`;

/** Waits on this computer for the answer to one request; ignores every other path and state, as browsers ask for icons. */
async function listen(state: string) {
  const arrived = Promise.withResolvers<URLSearchParams>();
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? "", "http://127.0.0.1");
    const isAnswer =
      request.method === "GET" && url?.pathname === "/callback" && url.searchParams.get("state") === state;
    response.setHeader("connection", "close");
    if (!isAnswer) return void response.writeHead(404).end();
    response
      .writeHead(200, { "content-type": "text/html; charset=utf-8", "referrer-policy": "no-referrer" })
      .end(donePage);
    response.once("close", () => arrived.resolve(url.searchParams));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { port: (server.address() as AddressInfo).port, answer: arrived.promise, close };
}

async function ended(signal: AbortSignal): Promise<never> {
  await sleep(waitMs, undefined, { signal, ref: false });
  throw refused("Nobody allowed the login within ten minutes.");
}

async function byCode(ctx: CliContext, url: string): Promise<string> {
  const { signal } = ctx;
  const started = await send(ctx, `${url}/oauth/device`, {
    client_id: clientId,
    device_name: ctx.environment.hostname,
  });
  const {
    device_code,
    user_code,
    verification_uri: page,
    expires_in = 0,
    interval = 5,
  } = started.body as Partial<Device>;
  if (device_code === undefined || user_code === undefined) throw failed(started);
  requireOwn(url, String(page));
  ctx.output.note(
    (paint) =>
      `Open ${paint.bold(oneLine(String(page), 200))} in a browser, and type this code: ${paint.bold(oneLine(user_code, 20))}`,
  );
  const form = { grant_type: "urn:ietf:params:oauth:grant-type:device_code", device_code, client_id: clientId };
  let pauseMs = interval * 1000;
  for (const endMs = Date.now() + expires_in * 1000; Date.now() < endMs;) {
    await sleep(pauseMs, undefined, { signal });
    // A platform that is away for a moment ends nothing.
    const answer = await send(ctx, `${url}/oauth/token`, form).catch(() => undefined);
    signal.throwIfAborted();
    if (answer === undefined || answer.status >= 500 || answer.body["error"] === "authorization_pending") continue;
    if (answer.body["error"] === "slow_down") pauseMs += 5000;
    else if (answer.body["error"] === "access_denied") throw refused("The login was not allowed.");
    else if (answer.body["error"] === "expired_token") break;
    else return tokenOf(answer);
  }
  throw refused("Nobody typed the code within ten minutes.");
}

interface Device {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri: string;
  /** Seconds. */
  readonly expires_in: number;
  readonly interval: number;
}

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Sends a form, or reads a document; a body that is no JSON object is empty. */
async function send({ signal }: CliContext, url: string, form?: Record<string, string>): Promise<Answer> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(30_000)]);
  const sent = form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) };
  const response = await fetch(url, { ...sent, redirect: "manual", signal: limit }).catch(() => {
    signal.throwIfAborted();
    const message = `${new URL(url).origin} does not answer.`;
    throw new CliError("unavailable", "unreachable", {
      message,
      hint: "Is the platform running, and is the address right?",
    });
  });
  const body: unknown = await response.json().catch(() => ({}));
  return { status: response.status, body: body !== null && typeof body === "object" ? (body as Answer["body"]) : {} };
}

function tokenOf(answer: Answer): string {
  const token = answer.body["access_token"];
  if (typeof token !== "string") throw failed(answer);
  return token;
}

function failed({ body, status }: Answer): CliError {
  const said = [body["error_description"], body["error"]].find((each) => typeof each === "string");
  return refused(`The platform did not log this computer in: ${said?.slice(0, 200) ?? `status ${status}`}`);
}

function refused(message: string): CliError {
  return new CliError("unauthorized", "not_logged_in", { message, hint: "Try again: berth login <url>" });
}

/** Ends a token that `logIn` got; others stay valid. Returns whether it ended. */
export async function endLogin(ctx: CliContext, { url, token }: { url: string; token: string }): Promise<boolean> {
  const me = await createClient({ baseUrl: url, token })
    .call("me.get")
    .catch(() => undefined);
  if (me?.token.kind !== "cli") return false;
  const answer = await send(ctx, `${url.replace(/\/+$/, "")}/oauth/revoke`, { token }).catch(() => undefined);
  return answer?.status === 200;
}
