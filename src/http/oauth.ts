import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Refused } from "../features/context.ts";
import { addressKey } from "../kit/address-key.ts";
import type { PipelineOptions } from "./exchange.ts";
import { answerTo } from "./errors.ts";
import * as programs from "../features/programs/programs.ts";
import { addressOf, consentUrl, resourceMetadataPath } from "./oauth-address.ts";
import { readOnlyForms } from "./own-form.ts";

export type Oauth = Pick<PipelineOptions, "platform" | "limiter" | "log">;

type Form = Readonly<Record<string, string | undefined>>;
type FormRequest = FastifyRequest<{ Body: Form | undefined }>;

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

/**
 * Adds the authorization server for programs: Oauth 2.1 for public clients with PKCE, and the device flow. What it issues is a token of the
 * platform, without refresh tokens: it is looked up at each request, and ends within a second of its revocation. People consent on the
 * pages of `consent-page.ts`.
 */
export function addOauth(app: FastifyInstance, given: Oauth): void {
  const here = (request: FastifyRequest) => addressOf(request, given.platform.addresses.controlUrl);
  const open = { "cache-control": "no-store" };
  app.get("/.well-known/oauth-authorization-server", (request, reply) =>
    reply.headers(open).send({
      ...serverOf(here(request), consentUrl(request, given.platform.addresses.controlUrl)),
      client_id_metadata_document_supported: programs.prefersDocuments(given.platform.ports.outgoingHttp),
    }),
  );
  for (const path of [resourceMetadataPath, "/.well-known/oauth-protected-resource"])
    app.get(path, (request, reply) => reply.headers(open).send(resourceOf(here(request))));
  void app.register(async (scope) => {
    readOnlyForms(scope);
    scope.addContentTypeParser(
      "application/json",
      { parseAs: "string", bodyLimit: 16_384 },
      async (_: FastifyRequest, text: string | Buffer) => parseJson(text.toString()),
    );
    scope.setErrorHandler((error, request, reply) => sendError(given, error, { request, reply }));
    scope.post("/oauth/register", (request, reply) => register(given, request, reply));
    scope.post("/oauth/token", (request: FormRequest, reply) => token(given, request, reply));
    scope.post("/oauth/device", async (request: FormRequest, reply) => {
      const { client_id, device_name } = request.body ?? {};
      if (client_id !== programs.commandLine.id) return fail(reply, "unauthorized_client");
      limitAddress(given, request, "device");
      const address = addressKey(request.clientAddress);
      const device = programs.shownName(device_name);
      const started = await programs.startDevice(given.platform, { client: programs.commandLine, device, address });
      return sendJson(reply, 200, {
        ...started,
        verification_uri: new URL("/session/device", consentUrl(request, given.platform.addresses.controlUrl)).href,
      });
    });
    scope.post("/oauth/revoke", async (request: FormRequest, reply) => {
      await programs.disconnect(given.platform, request.body?.["token"] ?? "");
      return reply.code(200).header("cache-control", "no-store").send();
    });
  });
}

/** RFC 8414. */
function serverOf(issuer: string, authorization_endpoint: string) {
  return {
    issuer,
    authorization_endpoint,
    token_endpoint: `${issuer}/oauth/token`,
    registration_endpoint: `${issuer}/oauth/register`,
    device_authorization_endpoint: `${issuer}/oauth/device`,
    revocation_endpoint: `${issuer}/oauth/revoke`,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: ["authorization_code", deviceGrant],
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: ["none"],
    revocation_endpoint_auth_methods_supported: ["none"],
    authorization_response_iss_parameter_supported: true,
    scopes_supported: ["mcp"],
  };
}

/** RFC 9728. */
function resourceOf(issuer: string) {
  return {
    resource: `${issuer}/mcp`,
    authorization_servers: [issuer],
    bearer_methods_supported: ["header"],
    scopes_supported: ["mcp"],
    resource_name: "Berth",
  };
}

/** RFC 7591. */
async function register(given: Oauth, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { redirect_uris, client_name } = (request.body ?? {}) as { redirect_uris?: unknown; client_name?: unknown };
  if (
    !Array.isArray(redirect_uris) ||
    redirect_uris.length === 0 ||
    redirect_uris.length > 10 ||
    !redirect_uris.every(programs.isRedirect)
  )
    return fail(
      reply,
      "invalid_redirect_uri",
      "Give 1 to 10 addresses: HTTPS, or http on 127.0.0.1, [::1] or localhost.",
    );
  limitAddress(given, request, "register");
  const name = programs.shownName(client_name) || "A program without a name";
  const client = await programs.registerClient(
    given.platform.db,
    { name, redirect_uris },
    addressKey(request.clientAddress),
  );
  return sendJson(reply, 201, {
    client_id: client.id,
    client_name: client.name,
    redirect_uris: client.redirect_uris,
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code"],
    response_types: ["code"],
    client_id_issued_at: Math.floor(Date.now() / 1000),
  });
}

async function token(given: Oauth, request: FormRequest, reply: FastifyReply): Promise<FastifyReply> {
  const form = request.body ?? {};
  const issued = await issue(given, form);
  if (typeof issued !== "string") {
    const { token: access_token, expires_in } = issued;
    return sendJson(reply, 200, { access_token, token_type: "Bearer", expires_in, scope: "mcp" });
  }
  if (issued === "invalid_grant") limitAddress(given, request, "grant");
  return fail(reply, issued);
}

async function issue({ platform }: Oauth, form: Form): Promise<programs.Issued | string> {
  const { grant_type, client_id = "", code = "", code_verifier = "", redirect_uri, device_code = "" } = form;
  if (grant_type === deviceGrant) return programs.pollDevice(platform, device_code, client_id);
  if (grant_type !== "authorization_code") return "unsupported_grant_type";
  const issued = await programs.exchangeCode(platform, { code, client_id, redirect_uri, verifier: code_verifier });
  if (issued !== undefined) return issued;
  // Tells a client whose registration was forgotten to register again.
  return (await programs.isForgotten(platform.db, client_id)) ? "invalid_client" : "invalid_grant";
}

/** Refuses an address that sends too many such requests. */
function limitAddress({ limiter }: Oauth, { clientAddress }: FastifyRequest, what: string): void {
  const { refused } = limiter.count("refusedPerMinute", `oauth ${what} ${addressKey(clientAddress)}`);
  if (refused !== undefined) throw refused;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refused("invalid_request");
  }
}

function fail(reply: FastifyReply, error: string, error_description?: string): FastifyReply {
  return sendJson(reply, error === "invalid_client" ? 401 : 400, { error, error_description });
}

function sendJson(reply: FastifyReply, status: number, body: object): FastifyReply {
  return reply.code(status).header("cache-control", "no-store").send(body);
}

/** Answers in the form of RFC 6749, section 5.2. */
function sendError(
  { log }: Oauth,
  error: unknown,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
): FastifyReply {
  const { status, headers, body, kind } = answerTo(error);
  if (kind === "fault") log.error({ request_id: request.id, err: error }, "an answer to a program failed");
  const code = status === 429 ? "slow_down" : status < 500 ? "invalid_request" : "temporarily_unavailable";
  return sendJson(reply.headers(headers), status, {
    error: kind === "fault" ? "server_error" : code,
    error_description: body.error,
  });
}
