import { LRUCache } from "lru-cache";
import type { Configuration, CustomFetch } from "openid-client";
import { name as nameField } from "../contract/table.ts";
import { Refused, type HandlerPlatform } from "../features/context.ts";
import type { NewIdentity } from "../features/people/people.ts";
import { describeIssuer, mostAnswerBytes, providerTimeoutMs, type Provider } from "../features/providers/providers.ts";

/** One attempt to sign in with a provider: what the answer must fit. */
export interface Attempt {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export interface Started extends Attempt {
  /** The page of the provider. */
  readonly url: string;
}

/** Who signed in at a provider. */
export interface Answered {
  readonly identity: NewIdentity;
  /** Milliseconds since 1970, when the person typed a password or the like at the provider; null if it does not say. */
  readonly provenAtMs: number | null;
}

export interface OidcClient {
  /** `fresh`: the provider asks the person again. `redirectUri`: where the answer goes. */
  start(provider: Provider, redirectUri: string, options: { readonly fresh: boolean }): Promise<Started>;
  /** Verifies the answer that the browser brings. Refuses with a sentence for the person. */
  finish(provider: Provider, current: URL, attempt: Attempt): Promise<Answered>;
}

type OutgoingHttp = HandlerPlatform["ports"]["outgoingHttp"];

const hourMs = 3_600_000;
/** All requests of a step together. */
const deadlineMs = 10_000;
/** Seconds by which the clocks of the provider and this machine may differ. */
const clockToleranceSeconds = 60;

/** Creates the client of the identity providers. It remembers what an issuer says about itself for an hour. */
export function createOidcClient(outgoing: OutgoingHttp): OidcClient {
  const known = new LRUCache<string, Promise<Configuration>>({ max: 100, ttl: hourMs });
  const configOf = (provider: Provider) => {
    const key = `${provider.id} ${provider.version}`;
    const found = known.get(key) ?? configure(outgoing, provider);
    known.set(key, found);
    found.catch(() => known.delete(key));
    return found;
  };
  return {
    start: (provider, redirectUri, { fresh }) =>
      answering(provider, async () => {
        const oidc = await import("openid-client");
        const config = await configOf(provider);
        const attempt = {
          state: oidc.randomState(),
          nonce: oidc.randomNonce(),
          verifier: oidc.randomPKCECodeVerifier(),
        };
        const isOidc = provider.kind === "oidc";
        const url = oidc.buildAuthorizationUrl(config, {
          redirect_uri: redirectUri,
          scope: isOidc ? "openid profile email" : "read:user user:email",
          state: attempt.state,
          code_challenge: await oidc.calculatePKCECodeChallenge(attempt.verifier),
          code_challenge_method: "S256",
          ...(isOidc && { nonce: attempt.nonce }),
          ...(isOidc && fresh && { max_age: "0" }),
        });
        return { ...attempt, url: url.href };
      }),
    finish: (provider, current, { state, nonce, verifier }) =>
      answering(provider, async () => {
        const oidc = await import("openid-client");
        const config = await configOf(provider);
        const isOidc = provider.kind === "oidc";
        const tokens = await oidc.authorizationCodeGrant(config, current, {
          pkceCodeVerifier: verifier,
          expectedState: state,
          ...(isOidc && { expectedNonce: nonce, idTokenExpected: true }),
        });
        if (!isOidc) return gitHubAnswer(outgoing, provider, tokens.access_token);
        const claims: Claims = tokens.claims() ?? {};
        const isNamed = "name" in claims || "email" in claims;
        const more =
          isNamed || config.serverMetadata().userinfo_endpoint === undefined
            ? {}
            : await oidc.fetchUserInfo(config, tokens.access_token, String(claims["sub"])).catch(() => ({}));
        return oidcAnswer({ ...more, ...claims });
      }),
  };
}

/** Turns failures into refusals: the provider's with its name, and all others without details, which the provider chooses. */
async function answering<T>({ name }: Provider, work: () => Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Unreachable("It did not answer in time.")), deadlineMs).unref();
  });
  try {
    return await Promise.race([work(), late]);
  } catch (failure) {
    const reason = unreachable(failure);
    if (reason !== undefined)
      throw new Refused("provider_unavailable", { error: `${name} does not work as a sign-in now. ${reason}` });
    const error = mistimed(failure, name) ?? `The answer of ${name} is not valid here, or was used before.`;
    throw new Refused("unauthorized", { error });
  } finally {
    clearTimeout(timer);
  }
}

/** The provider did not answer, or not with what it should. The message is a sentence. */
class Unreachable extends Error {}

function unreachable(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof Unreachable) return cause.message;
  return undefined;
}

/** Returns what to say of an ID token that is valid at another time; the difference shows that a clock is wrong. */
function mistimed(error: unknown, name: string): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { claims, now, claim } = (cause.cause ?? {}) as { claims?: Claims; now?: number; claim?: string };
    if (claim !== "exp" && claim !== "nbf") continue;
    const seconds = Math.abs(Number(now) - Number(claims?.[claim]));
    const when = claim === "exp" ? `ended ${seconds} seconds ago` : `begins in ${seconds} seconds`;
    return `By this machine's clock, the answer of ${name} ${when}. Try again; if that does not help, the platform's operator compares the clocks.`;
  }
  return undefined;
}

async function configure(outgoing: OutgoingHttp, provider: Provider): Promise<Configuration> {
  const oidc = await import("openid-client");
  const { issuer, client_id, client_secret } = provider;
  const description = provider.kind === "oidc" ? await describe(outgoing, issuer) : gitHub(issuer);
  const methods = description.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  const authentication = methods.includes("client_secret_post") ? oidc.ClientSecretPost : oidc.ClientSecretBasic;
  const tolerance = { [oidc.clockTolerance]: clockToleranceSeconds };
  const config = new oidc.Configuration({ ...description }, client_id, tolerance, authentication(client_secret));
  config[oidc.customFetch] = fetchThrough(outgoing);
  if (issuer.startsWith("http:")) oidc.allowInsecureRequests(config);
  // Verifies the ID token's signature, too, although it comes from the issuer itself.
  if (provider.kind === "oidc") oidc.enableNonRepudiationChecks(config);
  return config;
}

async function describe(outgoing: OutgoingHttp, issuer: string) {
  return describeIssuer(outgoing, issuer).catch(({ message }: Error) => Promise.reject(new Unreachable(message)));
}

/** https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps */
function gitHub(issuer: string) {
  return {
    issuer,
    authorization_endpoint: `${issuer}/login/oauth/authorize`,
    token_endpoint: `${issuer}/login/oauth/access_token`,
    token_endpoint_auth_methods_supported: ["client_secret_post"],
  };
}

function fetchThrough(outgoing: OutgoingHttp): CustomFetch {
  return async (url, { method, headers, body }) => {
    const sent = {
      method: method === "GET" ? "GET" : "POST",
      url,
      headers,
      body: body instanceof URLSearchParams ? body.toString() : "",
    } as const;
    const answer = await outgoing.send(
      { ...sent, timeoutMs: providerTimeoutMs, excerptBytes: mostAnswerBytes },
      AbortSignal.timeout(providerTimeoutMs),
    );
    if (answer.outcome === "failed") throw new Unreachable(answer.reason);
    const { status, contentType, excerpt } = answer;
    if (status >= 500) throw new Unreachable(`It answered with ${status}.`);
    return new Response(status === 204 || status === 304 ? null : excerpt, {
      status,
      headers: contentType === undefined ? {} : { "content-type": contentType },
    });
  };
}

type Claims = Readonly<Record<string, unknown>>;

function oidcAnswer(claims: Claims): Answered {
  const { iss, sub, auth_time: at } = claims;
  const label = [claims["email"], claims["preferred_username"], claims["name"], sub].find(isText) ?? "";
  const identity = { issuer: String(iss), subject: String(sub), label: label.slice(0, 300), ...person(claims) };
  return { identity, provenAtMs: typeof at === "number" ? at * 1000 : null };
}

/** GitHub has no ID token: its API says who the access token belongs to, and not when the person last signed in. */
async function gitHubAnswer(outgoing: OutgoingHttp, { issuer }: Provider, token: string): Promise<Answered> {
  const api = issuer === "https://github.com" ? "https://api.github.com" : `${issuer}/api/v3`;
  const read = async (path: string) => {
    const headers = { accept: "application/json", authorization: `Bearer ${token}`, "user-agent": "Berth" };
    const fetched = await fetchThrough(outgoing)(`${api}${path}`, {
      ...{ method: "GET", headers, body: null, redirect: "manual" },
    });
    if (!fetched.ok) throw new Unreachable(`It answered with ${fetched.status}.`);
    return fetched.json() as Promise<unknown>;
  };
  const [user, emails] = (await Promise.all([read("/user"), read("/user/emails")])) as [Claims, readonly Claims[]];
  const { id, login } = user;
  if (!Number.isSafeInteger(id)) throw new Unreachable("It did not say who signed in.");
  const email = [emails].flat().find(({ primary }) => primary === true)?.["email"];
  const named = person({ name: user["name"] ?? login, email });
  return { identity: { issuer, subject: String(id), label: String(login).slice(0, 300), ...named }, provenAtMs: null };
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

/** The name and e-mail address for people to read; what does not fit is left out. */
function person(claims: Claims): Pick<NewIdentity, "name" | "email"> {
  const name = [claims["name"], claims["preferred_username"]].map((each) => nameField.safeParse(each).data);
  const email = claims["email"];
  return {
    name: name.find(isText) ?? "New person",
    email: isText(email) && email.length <= 254 && nameField.max(254).safeParse(email).success ? email : null,
  };
}
