import { webAddress } from "./web-address.ts";
import { headers, sessionOf, unreachable, type Session } from "./session.ts";

/** Signs in, or returns what to ask first. Throws a sentence for the user. */
export async function signIn(body: Credential): Promise<Session | { readonly question: SignInQuestion }> {
  const response = await fetch("/session", { method: "POST", headers, body: JSON.stringify(body) }).catch(unreachable);
  const answer = (await response.json().catch(() => ({}))) as Partial<SignInAnswer>;
  if (answer.question !== undefined) return { question: answer.question };
  if (!response.ok || answer.token === undefined) throw new Error(answer.error ?? "Signing in did not work.");
  return sessionOf(answer.token);
}

/** What signs in: a token, or the code of a one-time link, with the person's consent if the platform has asked for it. */
export type Credential =
  | { readonly token: string }
  | { readonly code: string; readonly agreed: boolean; readonly elsewhere: boolean };

/** What the page asks before a link signs in. `present`: the organization of the session that it would replace. */
export type SignInQuestion = { readonly present: string | null } & (
  | { readonly organization: string; readonly token: string }
  /** The person whose link it is. */
  | { readonly person: string }
);

interface SignInAnswer {
  readonly token: string;
  readonly question: SignInQuestion;
  readonly error: string;
}

/** Whether this page can use passkeys: browsers offer them in secure contexts, and never for an IP address. */
export const hasPasskeys =
  "PublicKeyCredential" in globalThis && isSecureContext && !/^[\d.]+$|^\[/.test(location.hostname);

/** Signs in with a passkey. Throws a sentence for the user. */
export async function signInByPasskey(): Promise<Session> {
  return sessionOf((await sign<SignInAnswer>("passkey")).token);
}

/** Proves with a passkey that the person who is signed in is there. */
export async function provePresence(): Promise<void> {
  await sign("prove");
}

async function sign<T>(path: "passkey" | "prove"): Promise<T> {
  const { options, unavailable } = await ask<PasskeyAnswer>(path, {});
  if (options === undefined) throw new Error(unavailable ?? noPasskey);
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as PublicKeyCredentialRequestOptionsJSON);
  const passkey = await navigator.credentials.get({ publicKey }).catch(() => null);
  if (passkey === null) throw new Error(noPasskey);
  return ask(path, { passkey: passkey as PublicKeyCredential });
}

/** Gives the person who is signed in another passkey. */
export async function addPasskey(name: string): Promise<void> {
  const first = await askWithProof<PasskeyAnswer>("add-passkey", { name });
  await ask("add-passkey", { name, passkey: await createPasskey(first) });
}

async function createPasskey({ options }: PasskeyAnswer): Promise<PublicKeyCredential> {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as PublicKeyCredentialCreationOptionsJSON);
  const passkey = await navigator.credentials.create({ publicKey }).catch(() => null);
  if (passkey === null) throw new Error("No passkey was created. Try again.");
  return passkey as PublicKeyCredential;
}

export interface OfferedProvider {
  readonly id: string;
  readonly name: string;
}

export async function offeredProviders(): Promise<readonly OfferedProvider[]> {
  return (await ask<{ readonly providers: readonly OfferedProvider[] }>("ways", {})).providers;
}

/** What a person wants at a provider. */
export type ProviderWish =
  | { readonly to: "sign-in"; readonly next?: string }
  | { readonly to: "join"; readonly code: string }
  | { readonly to: "link" | "prove" };

/** Leaves for a provider's page, which sends the browser back. */
export async function goToProvider(id: string, wish: ProviderWish): Promise<void> {
  location.assign(webAddress((await askWithProof<{ readonly url: string }>(`oidc/${id}`, wish)).url) ?? "/");
}

const noPasskey = "No passkey was used. Try again, or sign in another way.";

interface PasskeyAnswer {
  readonly options?: object;
  readonly unavailable?: string;
}

/** What an invitation's link offers. */
export interface Invitation {
  readonly organization: string;
  readonly invited_by: string;
  readonly role: string;
  readonly projects: readonly string[] | null;
  /** Who is signed in here and can join without another passkey. */
  readonly present: string | null;
  readonly passkeys_unavailable: string | null;
  readonly providers: readonly OfferedProvider[];
}

export async function readInvitation(code: string): Promise<Invitation> {
  return ask<Invitation>("invitation", { code });
}

/** Joins by an invitation: under a new name with a new passkey, or, without a name, as the person who is signed in. */
export async function join(code: string, name?: string): Promise<Session> {
  const first = await ask<PasskeyAnswer & Partial<SignInAnswer>>("join", { code, ...(name && { name }) });
  if (first.token !== undefined) return sessionOf(first.token);
  const passkey = await createPasskey(first);
  return sessionOf((await ask<SignInAnswer>("join", { code, name, passkey })).token);
}

/** Works in another of the person's organizations from now on. */
export async function switchOrganization(organization: string): Promise<void> {
  await ask("organization", { organization });
  location.assign("/");
}

async function ask<T>(path: string, body: object): Promise<T> {
  const asked = { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(`/session/${path}`, asked).catch(unreachable);
  const answer = (await response.json().catch(() => ({}))) as T & { readonly error?: string; readonly code?: string };
  if (!response.ok) throw new Refusal(answer.error ?? "Signing in did not work.", answer.code);
  return answer;
}

/** Asks, and again after a proof that the person is there if the last one is old. */
function askWithProof<T>(path: string, body: object): Promise<T> {
  return ask<T>(path, body).catch(async (error: Error) => {
    if ((error as Refusal).code !== "fresh_sign_in_required") throw error;
    await provePresence();
    return ask<T>(path, body);
  });
}

/** The message is a sentence for the user. */
class Refusal extends Error {
  readonly code: string | undefined;
  constructor(message: string, code: string | undefined) {
    super(message);
    this.code = code;
  }
}

/** Whether another site may have opened this page. Browsers tell the server (`Sec-Fetch-Site`) over HTTPS and on this machine. */
export function isOpenedElsewhere(): boolean {
  const [navigation] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  const site = navigation?.serverTiming?.find(({ name }) => name === "site")?.description;
  return site !== "none" && site !== "same-origin";
}
