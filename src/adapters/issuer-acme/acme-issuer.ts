import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { getCACertificates } from "node:tls";
import { AsyncLocalStorage } from "node:async_hooks";
import acme from "acme-client";
import type {
  CertificateIssuer,
  CertificateOrder,
  Challenge,
  ChallengePublisher,
  OrderOutcome,
  RenewalWindow,
  OrderRefusal,
} from "../../ports/certificate-issuer.ts";

export interface AcmeIssuerOptions {
  /** The directory's URL (RFC 8555 §7.1.1). */
  readonly directory: string;
  readonly email: string | null;
  /** A PEM file of authorities to trust for the directory's own certificate, in addition to the system's. */
  readonly caFile: string | null;
  readonly externalAccount: { readonly kid: string; readonly hmacKey: string } | null;
}

const requestTimeoutMs = 20_000;
const orderTimeoutMs = 180_000;
const pollMs = { backoffAttempts: 25, backoffMin: 250, backoffMax: 10_000 };

/** Orders certificates from any authority that speaks ACME (RFC 8555). acme-client's settings are global, so use one issuer per process. */
export function createAcmeIssuer(options: AcmeIssuerOptions): CertificateIssuer {
  const { axios } = acme;
  axios.defaults.timeout = requestTimeoutMs;
  // No retries here: the reconciler retries, with the delays that an authority asks for.
  Object.assign((axios.defaults as unknown as { acmeSettings: object }).acmeSettings, { retryMaxAttempts: 0 });
  const ca = options.caFile === null ? {} : { ca: [...getCACertificates(), readFileSync(options.caFile, "utf8")] };
  axios.defaults.httpsAgent = new Agent({ keepAlive: true, ...ca });
  const directory = async () => (await axios.get<Directory>(options.directory)).data;
  return {
    order: (order, challenges) => placeOrder(options, order, challenges),
    createAccountKey: async () => (await acme.crypto.createPrivateEcdsaKey()).toString(),
    async identities() {
      return (await directory().catch(() => undefined))?.meta?.caaIdentities ?? [];
    },
    async suggestedRenewal(chainPem) {
      const url = (await directory().catch(() => undefined))?.renewalInfo;
      const id = certificateId(chainPem);
      if (url === undefined || id === null) return null;
      const answer = await axios.get<RenewalInfo>(`${url.replace(/\/$/, "")}/${id}`).catch(() => undefined);
      return windowOf(answer?.data.suggestedWindow);
    },
  };
}

interface Directory {
  readonly renewalInfo?: string;
  readonly meta?: { readonly caaIdentities?: readonly string[] };
}

interface RenewalInfo {
  readonly suggestedWindow?: { readonly start: string; readonly end: string };
}

function windowOf(suggested: RenewalInfo["suggestedWindow"]): RenewalWindow | null {
  const [from, to] = [new Date(suggested?.start ?? ""), new Date(suggested?.end ?? "")];
  return from <= to ? { from, to } : null;
}

async function placeOrder(
  options: AcmeIssuerOptions,
  order: CertificateOrder,
  challenges: ChallengePublisher,
): Promise<OrderOutcome> {
  return observeProblems(async (observed) => {
    const tooLong = new AbortController();
    try {
      const late = sleep(orderTimeoutMs, undefined, { signal: tooLong.signal, ref: false }).then((): never => {
        throw new Error("The certificate order took too long.");
      });
      return await Promise.race([perform(options, order, challenges, observed), late]);
    } catch (error) {
      return refusalOf(error, observed);
    } finally {
      tooLong.abort();
    }
  });
}

async function perform(
  options: AcmeIssuerOptions,
  order: CertificateOrder,
  challenges: ChallengePublisher,
  observed: Observed,
): Promise<OrderOutcome> {
  const { key_pem: accountKey, url } = order.account;
  const client = new acme.Client({
    ...{ directoryUrl: options.directory, accountKey, ...pollMs },
    ...(url === null ? {} : { accountUrl: url }),
    ...(options.externalAccount === null ? {} : { externalAccountBinding: options.externalAccount }),
  });
  const contact = options.email === null ? {} : { contact: [`mailto:${options.email}`] };
  if (url === null) await client.createAccount({ termsOfServiceAgreed: true, ...contact });
  const placed = await client.createOrder({ identifiers: order.names.map((value) => ({ type: "dns", value })) });
  for (const authorization of await client.getAuthorizations(placed))
    await prove(client, { authorization, kind: order.challenge, challenges, observed });
  const [key, csr] = await acme.crypto.createCsr(
    { altNames: [...order.names] },
    await acme.crypto.createPrivateEcdsaKey(),
  );
  const finalized = await client.finalizeOrder(placed, csr);
  const chain_pem = await client.getCertificate(finalized);
  return { outcome: "issued", chain_pem, key_pem: key.toString(), account_url: client.getAccountUrl() };
}

interface Proof {
  readonly authorization: acme.Authorization;
  readonly kind: CertificateOrder["challenge"];
  readonly challenges: ChallengePublisher;
  readonly observed: Observed;
}

async function prove(client: acme.Client, { authorization, kind, challenges, observed }: Proof): Promise<void> {
  // Already validated for an earlier order.
  if (authorization.status === "valid") return;
  const offered = authorization.challenges.find((each) => each.type === kind);
  if (offered === undefined)
    throw new Error(`The authority offers no ${kind} challenge for ${authorization.identifier.value}.`);
  const text = await client.getChallengeKeyAuthorization(offered);
  const challenge: Challenge = { hostname: authorization.identifier.value, token: offered.token, text };
  try {
    observed.isPublishing = true;
    await challenges.publish(challenge);
    observed.isPublishing = false;
    observed.isProving = true;
    await client.completeChallenge(offered);
    await client.waitForValidStatus(offered);
    observed.isProving = false;
  } finally {
    await challenges.withdraw(challenge);
  }
}

// id-ce-authorityKeyIdentifier (RFC 5280 §4.2.1.1), as DER.
const authorityKeyOid = Buffer.from("0603551d23", "hex");
const keyIdentifierTag = 0x80;

/** Returns the certificate's identifier for renewal information (RFC 9773 §4.1); null when the certificate has no authority key identifier. */
function certificateId(chainPem: string): string | null {
  const certificate = new X509Certificate(chainPem);
  const at = certificate.raw.indexOf(authorityKeyOid);
  if (at === -1) return null;
  // Skip OCTET STRING, SEQUENCE and [0], each with a one-byte length; identifiers usually have 20 bytes.
  const start = at + authorityKeyOid.length + 4;
  if (certificate.raw[start] !== keyIdentifierTag) return null;
  const length = certificate.raw[start + 1] as number;
  const key = certificate.raw.subarray(start + 2, start + 2 + length);
  return `${key.toString("base64url")}.${serialOf(certificate).toString("base64url")}`;
}

/** Encodes the serial number as DER does: a positive number whose first bit is set gets a leading zero byte. */
function serialOf({ serialNumber }: X509Certificate): Buffer {
  const bytes = Buffer.from(serialNumber.length % 2 ? `0${serialNumber}` : serialNumber, "hex");
  return ((bytes[0] as number) & 0x80) === 0 ? bytes : Buffer.concat([Buffer.from([0]), bytes]);
}

/** What an authority reported during one order; acme-client's errors carry only its text. */
interface Observed {
  /** The response to a challenge is being published. */
  isPublishing?: boolean;
  /** The authority is validating a challenge. */
  isProving?: boolean;
  /** The problem type of RFC 8555 §6.7, without its URN prefix. */
  type?: string;
  detail?: string;
  status?: number;
  retryAfter?: string;
}

interface Problem {
  readonly type?: string;
  readonly detail?: string;
}

const prefix = "urn:ietf:params:acme:error:";
const current = new AsyncLocalStorage<Observed>();

acme.axios.interceptors.response.use((response) => {
  const observed = current.getStore();
  if (observed === undefined) return response;
  const data = response.data as (Problem & { readonly error?: Problem }) | undefined;
  const problem = data?.error ?? data;
  observed.status = response.status;
  if (problem?.type?.startsWith(prefix) !== true) return response;
  observed.type = problem.type.slice(prefix.length);
  observed.detail = problem.detail ?? "";
  observed.retryAfter = String(response.headers["retry-after"] ?? "");
  return response;
});

/** Runs one order and records the authority's problems separately from those of concurrent orders. */
function observeProblems<T>(work: (observed: Observed) => Promise<T>): Promise<T> {
  const observed: Observed = {};
  return current.run(observed, () => work(observed));
}

function refusalOf(error: unknown, observed: Observed): OrderOutcome {
  const said = observed.isPublishing === true ? "" : observed.detail;
  const detail = (said || (error as Error).message || String(error)).slice(0, 500);
  const not_before = laterThan(observed.retryAfter ?? "", detail);
  return { outcome: "refused", reason: reasonOf(observed), detail, not_before };
}

const reasons: Readonly<Record<string, OrderRefusal>> = {
  rateLimited: "rate_limited",
  caa: "caa",
  accountDoesNotExist: "account",
  serverInternal: "unreachable",
};

function reasonOf({ type, isPublishing = false, isProving = false, status = 0 }: Observed): OrderRefusal {
  if (isPublishing) return "publish";
  const known = reasons[type ?? ""];
  if (known !== undefined) return known;
  if (type === undefined) return status === 0 || status >= 500 || status < 400 ? "unreachable" : "rejected";
  if (isProving) return "challenge";
  // RFC 8555 §7.3.6: requests of a deactivated account are unauthorized, too.
  return type === "unauthorized" ? "account" : "rejected";
}

/** Returns the time from `Retry-After`, or from Let's Encrypt's sentence ("retry after 2025-01-02 03:04:05 UTC"). */
function laterThan(field: string, detail: string): Date | null {
  if (/^\d+$/.test(field)) return new Date(Date.now() + Number(field) * 1000);
  const said = /retry after (\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)/.exec(detail);
  const at = Date.parse(said === null ? field : `${said[1]}T${said[2]}Z`);
  return Number.isNaN(at) ? null : new Date(at);
}
