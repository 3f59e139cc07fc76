import type { FastifyRequest } from "fastify";
import type { Vault } from "../store/vault.ts";

export interface CookiePlace {
  readonly name: string;
  /** Over HTTP; over HTTPS it is `/`. */
  readonly path: string;
  readonly sameSite: "Strict" | "Lax";
}

export interface CookieContent {
  readonly value: string;
  /** 0 removes the cookie. */
  readonly ms: number;
  /** Whether the browser uses HTTPS. */
  readonly isSecure: boolean;
}

// Browsers accept a cookie with this prefix, which needs HTTPS and the path `/`, from this host alone. Otherwise an application below the
// same domain could plant a cookie of its owner's session, in which a visitor of the dashboard would then work.
const secureName = (name: string) => `__Host-${name}`;

/** Returns the header that stores a cookie in a browser. */
export function writeCookie({ name, path, sameSite }: CookiePlace, { value, ms, isSecure }: CookieContent): string {
  const place = isSecure ? `${secureName(name)}=${value}; Path=/` : `${name}=${value}; Path=${path}`;
  return `${place}; Max-Age=${ms / 1000}; HttpOnly; SameSite=${sameSite}${isSecure ? "; Secure" : ""}`;
}

/** Returns a cookie's value. Over HTTPS only the name counts that no other host can set. */
export function readCookie({ name }: CookiePlace, { headers }: FastifyRequest, controlUrl: string): string | undefined {
  const own = [headers.origin ?? "", controlUrl].map((url) => URL.parse(url)).find((url) => url?.host === headers.host);
  // Behind a proxy with another hostname, a request without `Origin` does not show whether the browser used HTTPS.
  const names = own ? [own.protocol === "https:" ? secureName(name) : name] : [secureName(name), name];
  return names
    .map((each) => new RegExp(`(?:^|; *)${each}=([\\w-]+)`).exec(headers.cookie ?? "")?.[1])
    .find((value) => value !== undefined);
}

const sealedFor = "dashboard";

/** Seals what a cookie holds, until its end. */
export function sealCookie(vault: Vault, name: string, { content, ms }: { content: object; ms: number }): string {
  const text = JSON.stringify({ ...content, until: Date.now() + ms });
  return vault.seal(sealedFor, name, text).toString("base64url");
}

/** Returns what a sealed cookie holds; undefined when it has ended, or this platform did not seal it. */
export function openCookie<T extends object>(vault: Vault, name: string, value: string): T | undefined {
  try {
    const content = JSON.parse(vault.open(sealedFor, name, Buffer.from(value, "base64url"))) as T & { until: number };
    return content.until > Date.now() ? content : undefined;
  } catch {
    return undefined;
  }
}
