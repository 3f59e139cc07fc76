import { createClient, type Client } from "../../contract/client.ts";

/** The signed-in client. Only this module's memory holds the token: neither storage nor a readable cookie has it. */
export type Session = Client;

/** Resumes the session from before a reload; undefined if there is none. */
export async function resumeSession(): Promise<Session | undefined> {
  const start = takeHeadStart();
  const { token } = await (start?.session ?? askForSession()).catch(askForSession);
  return typeof token === "string" ? sessionOf(token, start && fetchAfter(start.calls)) : undefined;
}

export const headers = { "content-type": "application/json", "x-berth-dashboard": "1" };

async function askForSession(): Promise<{ readonly token?: string | null }> {
  const response = await fetch("/session/resume", { method: "POST", headers }).catch(unreachable);
  return (await response.json().catch(() => ({}))) as { token?: string | null };
}

/** Forgets the token in this browser. The token itself stays valid. */
export async function signOut(): Promise<void> {
  isLeaving = true;
  await fetch("/session", { method: "DELETE", headers: { "x-berth-dashboard": "1" } }).catch(() => {});
  location.assign("/sign-in");
}

let isLeaving = false;

/** Returns whether the user is signing out, so that the end of the session is no news. */
export const isSigningOut = (): boolean => isLeaving;

export function sessionOf(token: string, given: typeof fetch = fetch): Session {
  return createClient({ baseUrl: location.origin, token, fetch: given });
}

export function unreachable(): never {
  throw new Unreachable("The platform does not answer. Is it running, and is this computer online?");
}

/** The control plane did not respond at all. */
class Unreachable extends Error {}

/** Requests that the script in index.html has already started: the session from before a reload, and the first calls of each page. */
interface HeadStart {
  readonly session: Promise<{ readonly token?: string | null }>;
  readonly calls: Calls;
}

/** By path and query. */
type Calls = Record<string, { readonly answer: Promise<Response>; readonly end: AbortController }>;

// How long a response counts as fresh.
const usefulMs = 10_000;

/** Returns the started requests and clears them, so that they are used once. Undefined if the head of the page started none. */
function takeHeadStart(): HeadStart | undefined {
  const page = globalThis as { berthHeadStart?: HeadStart };
  const { berthHeadStart: found } = page;
  delete page.berthHeadStart;
  return found;
}

/** Returns a `fetch` that answers each of these calls once with the response already requested. Requests that are not used in time are aborted. */
function fetchAfter(calls: Calls): typeof fetch {
  const begun = new Map(Object.entries(calls));
  const end = () => {
    for (const call of begun.values()) call.end.abort();
    begun.clear();
  };
  setTimeout(end, usefulMs);
  return (input, init) => {
    const path = typeof input === "string" ? input.slice(location.origin.length) : "";
    const call = init?.method === "GET" ? begun.get(path) : undefined;
    if (call === undefined) return fetch(input, init);
    begun.delete(path);
    init?.signal?.addEventListener("abort", () => call.end.abort());
    return call.answer.catch(() => fetch(input, init));
  };
}
