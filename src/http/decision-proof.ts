import { Refused, type Caller } from "../features/context.ts";
import { isRecent, passkeysOf } from "../features/people/people.ts";
import { optionsToSign, personOfAnswer, whyNoPasskeys, type Choice, type PasskeySite } from "./passkeys.ts";
import { parseJson } from "../kit/parse-json.ts";

/** The options with which a browser asks for the signature over each choice. */
export type SignOptions = Readonly<Record<Choice, object>>;

/** Returns what the page needs to sign this approval; null without a usable passkey, and for a token that is no person's session. */
export async function signOptionsFor(site: PasskeySite, caller: Caller, approval: string): Promise<SignOptions | null> {
  if (!(await hasPasskey(site, caller))) return null;
  const of = (choice: Choice) => optionsToSign(site, `decide:${approval}:${choice}`);
  return { approved: await of("approved"), denied: await of("denied") };
}

export interface Proposed {
  readonly approval: string;
  readonly choice: Choice;
  /** The passkey's answer as JSON. */
  readonly signature: string;
}

/** Returns by what means a signed-in caller decides; refuses, with a sentence, without the proof that it needs. */
export async function meansOf(site: PasskeySite, caller: Caller, { approval, choice, signature }: Proposed) {
  if (caller.session_id === null) return "token";
  if (!(await hasPasskey(site, caller))) {
    if (isRecent(caller.fresh_at)) return "fresh sign-in";
    throw new Refused("fresh_sign_in_required", {
      error: "Sign in again with your provider on the page of your session first, or decide by the link that was sent.",
    });
  }
  if (signature === "") throw new Refused("fresh_sign_in_required", { error: "Sign the decision with your passkey." });
  const person = await personOfAnswer(site, `decide:${approval}:${choice}`, parseJson(signature));
  if (person !== caller.person_id)
    throw new Refused("unauthorized", { error: "This passkey belongs to another account." });
  return "passkey";
}

async function hasPasskey(site: PasskeySite, { person_id, session_id }: Caller): Promise<boolean> {
  const { origin, hostname } = new URL(site.controlUrl);
  if (person_id === null || session_id === null || whyNoPasskeys(site, origin) !== undefined) return false;
  return (await passkeysOf(site.db, person_id, hostname)).some(({ usable }) => usable);
}
