import type { IncomingMessage, ServerResponse } from "node:http";
import { createGunzip } from "node:zlib";
import { admit, mayGoOn, missingText, type Admission, type RequestedAccess } from "./admission.ts";
import { copyCgiAnswer } from "./cgi.ts";
import { httpBackendCommand } from "./commands.ts";
import { faultAnswer } from "./fault-answer.ts";
import type { GitCaller } from "./gate.ts";
import { endedEarly, startGit, type GitHost, type GitProcess } from "./git-process.ts";
import { bandPacket } from "./packets.ts";
import { parseHttpRequest, safeProtocol, type HttpRequest } from "./paths.ts";

export type GitHttpHandler = (req: IncomingMessage, res: ServerResponse) => Promise<void>;

/**
 * Serves everything under `/git/`: smart HTTP through `git http-backend`, with Basic authentication (any user name, an API token as the
 * password). Never rejects. The HTTP server it is mounted on must not limit the time for a request's body: idle transfers are ended here.
 */
export function createGitHttpHandler(host: GitHost): GitHttpHandler {
  return async (req, res) => {
    try {
      await serve(host, req, res);
    } catch (error) {
      host.log.error({ err: error }, "a git request over HTTP failed");
      if (res.headersSent) res.destroy();
      else answerFault(res, error);
    }
  };
}

function answerFault(res: ServerResponse, error: unknown): void {
  const { status, text } = faultAnswer(error);
  reply(res, status, text, status === 503 ? { "retry-after": "5" } : {});
}

type Call = Extract<HttpRequest, { readonly service: string }>;

async function serve(host: GitHost, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const token = basicPassword(req.headers.authorization);
  const caller = token === null ? null : await host.gate.authenticateToken(token);
  if (token === null || caller === null) return askForToken(res);
  const request = parseHttpRequest(req.method ?? "", req.url ?? "");
  if (request.kind === "unknown") return reply(res, 404, missingText);
  if (request.kind === "dumb")
    return reply(res, 403, "Berth speaks git's smart protocol only; use git 1.6.6 or newer.\n");
  const refusal = unsupported(req, request);
  if (refusal !== null) return reply(res, 415, refusal);
  const admission = await admitCall(host, caller, request);
  if (admission.outcome === "missing") return reply(res, 404, missingText);
  if (admission.outcome !== "admitted")
    return reply(res, admission.outcome === "refused" ? 403 : 503, `${admission.reason}\n`);
  const process = await startGit(host, {
    service: request.service,
    caller,
    project: admission.project,
    protocol: safeProtocol(header(req, "git-protocol")),
    command: () => httpBackendCommand(host.programs),
    env: (dir) => cgiEnv(req, request, dir),
    stillAllowed: () => isStillAdmitted(host, token, request),
  });
  if (process === null) return reply(res, 503, "Berth is busy; try again in a minute.\n", { "retry-after": "30" });
  await connect(host, process, { req, res });
}

/** A push begins by requesting refs; that request already needs the right to push. */
function admitCall(host: GitHost, caller: GitCaller, request: Call): Promise<Admission> {
  const wanted: RequestedAccess = {
    path: request.path,
    access: request.service === "git-receive-pack" ? "write" : "read",
  };
  return admit(host.gate, [caller], wanted);
}

async function isStillAdmitted(host: GitHost, token: string, request: Call): Promise<boolean> {
  const caller = await host.gate.authenticateToken(token);
  return caller !== null && mayGoOn(await admitCall(host, caller, request));
}

/** Returns the CGI 1.1 variables that http-backend reads. The token is not among them. */
function cgiEnv(req: IncomingMessage, request: Call, dir: string): Record<string, string> {
  const isCall = request.kind === "call";
  // No CONTENT_LENGTH: if the body ends early, as when this process is killed, git 2.39's http-backend would loop for ever at the end of
  // its input. Without it, http-backend stops there.
  const contentType = header(req, "content-type");
  return {
    GIT_HTTP_EXPORT_ALL: "1",
    PATH_TRANSLATED: `${dir}/${isCall ? request.service : "info/refs"}`,
    QUERY_STRING: isCall ? "" : `service=${request.service}`,
    REQUEST_METHOD: isCall ? "POST" : "GET",
    ...(contentType === undefined ? {} : { CONTENT_TYPE: contentType }),
  };
}

async function connect(
  host: GitHost,
  process: GitProcess,
  { req, res }: { req: IncomingMessage; res: ServerResponse },
): Promise<void> {
  const { child } = process;
  req.on("data", process.touch);
  child.stdout.on("data", process.touch);
  child.stderr.on("data", (chunk: Buffer) =>
    host.log.debug({ text: chunk.toString("utf8", 0, 500) }, "git http-backend"),
  );
  if (header(req, "content-encoding") === undefined) req.pipe(process.input);
  else req.pipe(createGunzip().on("error", () => process.input.end())).pipe(process.input);
  const leave = () => void (res.writableFinished || process.clientGone());
  // A client that left while git started has already closed its response.
  if (res.destroyed) leave();
  else res.once("close", leave);
  const isAnswered = await copyCgiAnswer(child.stdout, res, process.report);
  const code = await process.answered;
  if (!isAnswered) return reply(res, 500, "git could not answer.\n");
  if (code === 0) return void res.end();
  // A client that gets a whole HTTP response without the end of git's waits for the rest for ever.
  res.write(process.report === null ? "" : bandPacket(3, endedEarly), () => res.destroy());
}

function unsupported(req: IncomingMessage, request: Call): string | null {
  const encoding = header(req, "content-encoding");
  if (encoding !== undefined && !/^(?:x-)?gzip$/.test(encoding))
    return "The only content encoding supported is gzip.\n";
  const expected = `application/x-${request.service}-request`;
  return request.kind === "call" && header(req, "content-type") !== expected
    ? `Expected content type ${expected}.\n`
    : null;
}

function basicPassword(authorization: string | undefined): string | null {
  const encoded = /^basic ([a-z0-9+/=_-]+)$/i.exec(authorization ?? "")?.[1];
  const text = encoded === undefined ? "" : Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  return colon < 0 || colon === text.length - 1 ? null : text.slice(colon + 1);
}

function header(req: IncomingMessage, name: string): string | undefined {
  const value = req.headers[name];
  return typeof value === "string" ? value : undefined;
}

function askForToken(res: ServerResponse): void {
  reply(
    res,
    401,
    "Give an API token as the password. `berth clone <project>` or, in a folder that exists, `berth link <project>` does that for git.\n",
    {
      "www-authenticate": 'Basic realm="Berth", charset="UTF-8"',
    },
  );
}

// Closing the connection after a POST avoids reading the rest of a refused body.
function reply(
  res: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  res.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    ...(res.req.method === "POST" ? { connection: "close" } : {}),
    ...headers,
  });
  res.end(text);
}
