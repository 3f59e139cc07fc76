import { createHash, randomBytes } from "node:crypto";

type Fields = Record<string, string>;

/** A browser that is signed in at a control plane, as far as consent pages need one. */
export function consentBrowser(baseUrl: string, cookie: string) {
  const load = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(new URL(path, baseUrl), {
      redirect: "manual",
      ...init,
      headers: { cookie, ...(init.headers as Fields) },
    });
    return { status: response.status, headers: response.headers, html: await response.text() };
  };
  const post = (path: string, form: Fields, headers: Fields = { origin: baseUrl }) =>
    load(path, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      body: new URLSearchParams(form).toString(),
    });
  return {
    load,
    post,
    /** Opens a program's request, and answers its form as a person would. */
    async decide(url: string | URL, choice: Fields = { choice: "allow" }, headers?: Fields) {
      // Doubles of a platform have an address that no browser reaches.
      const { pathname, search } = new URL(url, baseUrl);
      const path = `${pathname}${search}`;
      const { html } = await load(path);
      return post(path, { ...untouched, ...choice, nonce: nonceOf(html) }, headers);
    },
  };
}

/** A form of the consent page that nobody changed. */
const untouched = { reach: "all", approval_mode: "on", days: "90" };

export function nonceOf(html: string): string {
  return /name="nonce" value="([^"]+)"/.exec(html)?.[1] ?? "";
}

export function answerOf(headers: Headers): URLSearchParams {
  return new URL(headers.get("location") ?? "http://nowhere.test").searchParams;
}

export async function cookieFor(baseUrl: string, token: string): Promise<string> {
  const response = await fetch(`${baseUrl}/session`, {
    method: "POST",
    headers: { "content-type": "application/json", origin: baseUrl, "x-berth-dashboard": "1" },
    body: JSON.stringify({ token }),
  });
  return response.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
}

/** A verifier of PKCE with its challenge. */
export function proof() {
  const verifier = randomBytes(32).toString("base64url");
  return { verifier, challenge: createHash("sha256").update(verifier).digest("base64url") };
}
