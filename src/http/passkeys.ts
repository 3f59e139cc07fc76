import { createHash, randomBytes } from "node:crypto";
import { isIP } from "node:net";
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";
import { Refused } from "../features/context.ts";
import type { Db } from "../store/database.ts";
import type { Vault } from "../store/vault.ts";
import { selectPasskey, touchPasskey, useChallenge, type NewPasskey } from "../features/people/people.ts";

/** Where passkeys are used: the control plane's own host. */
export interface PasskeySite {
  readonly db: Db;
  readonly vault: Vault;
  /** The control plane's URL. Browsers bind a passkey to its host, and sign its origin. */
  readonly controlUrl: string;
}

/** What a person decides about a request. */
export type Choice = "approved" | "denied";

/** What an answered challenge is good for; an answer to another purpose's challenge is refused. */
type Purpose = "sign-in" | `join:${string}` | `add:${string}` | `prove:${string}` | `decide:${string}:${Choice}`;

const challengeMs = 5 * 60_000;

/** ES256, EdDSA and RS256 (https://www.iana.org/assignments/cose): what authenticators have. Node.js calls newer ones experimental. */
const supportedAlgorithmIDs = [-7, -8, -257];

/** Returns why a page of this origin cannot use passkeys, if it cannot: they need a secure context and no IP address as name. */
export function whyNoPasskeys({ controlUrl }: Pick<PasskeySite, "controlUrl">, origin: string): string | undefined {
  const url = new URL(controlUrl);
  const isLocal = url.hostname === "localhost" || url.hostname.endsWith(".localhost");
  if (isIP(url.hostname.replace(/[[\]]/g, "")) !== 0)
    return "This platform has an IP address instead of a name, and browsers offer passkeys for names only.";
  if (url.protocol !== "https:" && !isLocal)
    return "This platform is served over plain HTTP, and browsers offer passkeys over HTTPS only.";
  if (origin !== url.origin) return `Passkeys work at the platform's own address: ${url.origin}`;
  return undefined;
}

/** Returns the options of `navigator.credentials.get`. They name nobody, so they reveal nothing. */
export async function optionsToSign(site: PasskeySite, purpose: Purpose) {
  const { generateAuthenticationOptions } = await import("@simplewebauthn/server");
  return generateAuthenticationOptions({
    rpID: new URL(site.controlUrl).hostname,
    challenge: newChallenge(site, purpose),
    userVerification: "required",
    timeout: challengeMs,
  });
}

/** Returns the options of `navigator.credentials.create`. */
export async function optionsToRegister(site: PasskeySite, purpose: Purpose, userName: string) {
  const { generateRegistrationOptions } = await import("@simplewebauthn/server");
  return generateRegistrationOptions({
    rpName: "Berth",
    rpID: new URL(site.controlUrl).hostname,
    userName,
    userDisplayName: userName,
    challenge: newChallenge(site, purpose),
    attestationType: "none",
    supportedAlgorithmIDs,
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
    timeout: challengeMs,
  });
}

/** Returns whose passkey signed; refuses with a sentence for the person. */
export async function personOfAnswer(site: PasskeySite, purpose: Purpose, response: unknown): Promise<string> {
  const answer = response as AuthenticationResponseJSON;
  // Anybody may send any text here, also one that the database does not take.
  const isId = typeof answer?.id === "string" && /^[\w-]+$/.test(answer.id);
  const known = isId ? await selectPasskey(site.db, answer.id) : undefined;
  if (known === undefined) throw refused("This passkey is not known here.");
  const { verifyAuthenticationResponse } = await import("@simplewebauthn/server");
  const { credential_id: id, public_key: publicKey, counter, rp_id: expectedRPID } = known;
  const verified = await verified_(
    verifyAuthenticationResponse({
      response: answer,
      expectedChallenge: (challenge) => isChallenge(site, purpose, challenge),
      expectedOrigin: new URL(site.controlUrl).origin,
      expectedRPID,
      credential: { id, publicKey: new Uint8Array(publicKey), counter },
      requireUserVerification: true,
    }),
  );
  await requireFirstUse(site, answer.response.clientDataJSON);
  await touchPasskey(site.db, id, verified.authenticationInfo.newCounter);
  return known.person_id;
}

/** Returns the passkey that a browser created; refuses with a sentence for the person. */
export async function createdPasskey(
  site: PasskeySite,
  purpose: Purpose,
  response: unknown,
): Promise<Omit<NewPasskey, "person_id">> {
  const { verifyRegistrationResponse } = await import("@simplewebauthn/server");
  const answer = response as RegistrationResponseJSON;
  const rp_id = new URL(site.controlUrl).hostname;
  const verified = await verified_(
    verifyRegistrationResponse({
      response: answer,
      expectedChallenge: (challenge) => isChallenge(site, purpose, challenge),
      expectedOrigin: new URL(site.controlUrl).origin,
      expectedRPID: rp_id,
      requireUserVerification: true,
      supportedAlgorithmIDs,
    }),
  );
  const { credential } = verified.registrationInfo as NonNullable<typeof verified.registrationInfo>;
  await requireFirstUse(site, answer.response.clientDataJSON);
  return {
    credential_id: credential.id,
    public_key: Buffer.from(credential.publicKey),
    counter: credential.counter,
    transports: (credential.transports ?? []).slice(0, 10),
    rp_id,
  };
}

/** The library throws for an answer that is malformed or does not fit. */
async function verified_<T extends { readonly verified: boolean }>(answer: Promise<T>): Promise<T> {
  const result = await answer.catch(() => undefined);
  if (result?.verified !== true)
    throw refused("The passkey's answer is not valid here, or too old. Try again from this platform's own page.");
  return result;
}

function refused(error: string): Refused {
  return new Refused("unauthorized", { error });
}

/** A challenge is sealed with its purpose and its end, so that every control plane can check it. */
function newChallenge({ vault }: PasskeySite, purpose: Purpose): Uint8Array<ArrayBuffer> {
  const text = JSON.stringify({ until: Date.now() + challengeMs, random: randomBytes(16).toString("base64url") });
  return new Uint8Array(vault.seal("passkey", purpose, text));
}

function isChallenge({ vault }: PasskeySite, purpose: Purpose, challenge: string): boolean {
  try {
    const { until } = JSON.parse(vault.open("passkey", purpose, Buffer.from(challenge, "base64url"))) as {
      until: number;
    };
    return until > Date.now();
  } catch {
    return false;
  }
}

/** Refuses an answer whose challenge was answered before. `clientData` is the answer's, verified already. */
async function requireFirstUse({ db }: PasskeySite, clientData: string): Promise<void> {
  const { challenge } = JSON.parse(Buffer.from(clientData, "base64url").toString()) as { challenge: string };
  const hash = createHash("sha256").update(challenge).digest();
  if (!(await useChallenge(db, hash, new Date(Date.now() + challengeMs))))
    throw refused("This answer was used before.");
}
