import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { getCACertificates } from "node:tls";
import acme from "acme-client";
import type {
  CertificateIssuer,
  CertificateOrder,
  Challenge,
  ChallengePublisher,
  OrderOutcome,
  RenewalWindow,
} from "../../ports/certificate-issuer.ts";
import { observeProblems, refusalOf, type Observed } from "./problems.ts";

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
