import { createHash, createSign, generateKeyPairSync, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after } from "node:test";
import Provider from "oidc-provider";

export const client = { client_id: "berth", client_secret: "s".repeat(32) };

/** Who signs in at an issuer, without being asked. */
export interface Account {
  id: string;
  email: string;
  name: string;
}

async function listening(serve: RequestListener): Promise<{ server: Server; url: string }> {
  const server = createServer(serve).listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Starts a real OpenID Connect issuer, which signs `account` in as a person would. */
export async function startIssuer(redirectUris: string[]) {
  const account: Account = { id: "ada", email: "ada@example.com", name: "Ada" };
  const { server, url } = await listening((request, response) => {
    if (request.url?.startsWith("/interaction/") === true) void interact(provider, { request, response }, account.id);
    else
      provider
        .callback()(request, response)
        .catch(() => response.destroy());
  });
  const provider = new Provider(url, {
    clients: [
      { ...client, redirect_uris: redirectUris, grant_types: ["authorization_code"], response_types: ["code"] },
    ],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    conformIdTokenClaims: false,
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: account.email, email_verified: true, name: account.name }),
    }),
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    features: { devInteractions: { enabled: false } },
    cookies: { keys: ["k".repeat(32)] },
  });
  return { url, account, server };
}

interface Exchanged {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

async function interact(provider: Provider, { request, response }: Exchanged, accountId: string): Promise<void> {
  const { prompt } = await provider.interactionDetails(request, response);
  const grant = new provider.Grant({ accountId, clientId: client.client_id });
  grant.addOIDCScope("openid profile email");
  const result = prompt.name === "login" ? { login: { accountId } } : { consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}

/** Follows redirects as a browser does, with the issuer's cookies, until they leave the issuer; returns where they lead. */
export async function followTo(start: string, cookies = new Map<string, string>()): Promise<string> {
  let url = start;
  while (url.startsWith(new URL(start).origin)) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { cookie } });
    for (const set of response.headers.getSetCookie()) {
      const [name = "", value = ""] = (set.split(";")[0] as string).split("=");
      if (value === "") cookies.delete(name);
      else cookies.set(name, value);
    }
    const location = response.headers.get("location");
    if (location === null) throw new Error(`${url}: ${response.status} ${await response.text()}`);
    url = new URL(location, url).href;
  }
  return url;
}

/** What is wrong with the ID token of an issuer in somebody else's hands. */
export interface Falsified {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly alg?: "none";
  readonly badSignature?: boolean;
}

/** Starts an issuer that answers every code with an ID token that the test falsifies. `nonceOf` is of the last authorization request. */
export async function startFalseIssuer() {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const state: { falsified: Falsified; nonce: string; isDown: boolean } = { falsified: {}, nonce: "", isDown: false };
  const { url, server } = await listening((request, response) => {
    const path = request.url?.split("?")[0];
    if (state.isDown) return;
    const answers: Record<string, () => object> = {
      "/.well-known/openid-configuration": () => ({
        issuer: url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        jwks_uri: `${url}/jwks`,
        token_endpoint_auth_methods_supported: ["client_secret_post"],
        id_token_signing_alg_values_supported: ["RS256"],
      }),
      "/jwks": () => ({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "1", alg: "RS256", use: "sig" }] }),
      "/token": () => ({ access_token: "a", token_type: "bearer", id_token: idToken() }),
    };
    const answer = answers[path ?? ""];
    response.writeHead(answer ? 200 : 404, { "content-type": "application/json" });
    response.end(JSON.stringify(answer?.() ?? {}));
  });
  const idToken = () => {
    const { claims, alg = "RS256", badSignature } = state.falsified;
    const seconds = Math.floor(Date.now() / 1000);
    const usual = { iss: url, aud: client.client_id, sub: "eve", nonce: state.nonce, iat: seconds, exp: seconds + 60 };
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const signed = `${part({ alg, kid: "1", typ: "JWT" })}.${part({ ...usual, ...claims })}`;
    if (alg === "none") return `${signed}.`;
    const signature = badSignature ? randomBytes(256) : createSign("RSA-SHA256").update(signed).sign(privateKey);
    return `${signed}.${signature.toString("base64url")}`;
  };
  return { url, state, server };
}

/** Starts a stand-in for a GitHub server: authorization with PKCE, the token, and the two paths of its API. */
export async function startGitHub() {
  const account = { id: 583231, login: "ada", name: "Ada" };
  let challenge = "";
  const { url } = await listening((request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? "", "http://github.test");
    if (pathname === "/login/oauth/authorize") {
      challenge = query.get("code_challenge") ?? "";
      const back = `${query.get("redirect_uri")}?code=c1&state=${query.get("state")}`;
      return void response.writeHead(302, { location: back }).end();
    }
    let body = "";
    request.on("data", (part) => (body += String(part)));
    request.on("end", () => {
      const verifier = new URLSearchParams(body).get("code_verifier") ?? "";
      const fits = createHash("sha256").update(verifier).digest("base64url") === challenge;
      const hasToken = request.headers.authorization === "Bearer gho_1" && request.headers["user-agent"] !== undefined;
      const answers: Record<string, unknown> = {
        "/login/oauth/access_token": fits
          ? { access_token: "gho_1", token_type: "bearer", scope: "read:user,user:email" }
          : { error: "bad_verification_code" },
        "/api/v3/user": hasToken ? { ...account, email: null } : {},
        "/api/v3/user/emails": hasToken ? [{ email: "ada@example.com", primary: true, verified: true }] : {},
      };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answers[pathname] ?? {}));
    });
  });
  return { url, account };
}
