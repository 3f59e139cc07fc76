import type { FastifyInstance, FastifyRequest } from "fastify";
import { Refused, type HandlerPlatform } from "../features/context.ts";
import { attempt } from "../kit/attempt.ts";

const mostFormBytes = 16_384;

/** Lets these routes accept bodies of forms alone. */
export function readOnlyForms(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  const parser = { parseAs: "string", bodyLimit: mostFormBytes } as const;
  scope.addContentTypeParser(
    "application/x-www-form-urlencoded",
    parser,
    async (_: FastifyRequest, text: string | Buffer) => readForm(text.toString()),
  );
}

/** Parses a form's fields. Refuses a repeated field: one parser could use the first value and another the last. */
export function readForm(text: string): Readonly<Record<string, string>> {
  const fields = [...new URLSearchParams(text)];
  const form = Object.fromEntries(fields);
  if (Object.keys(form).length !== fields.length) throw new Refused("invalid_request");
  return form;
}

/** Returns whether the form was sent from this page, by its `Origin`; behind a proxy that is the host that the browser requested. */
export function isFromThisPage({ headers }: FastifyRequest, controlUrl: string): boolean {
  // Sent by a browser that prefers the header's referrer policy over the page's. No page of another site can send `same-origin`.
  if (headers.origin === "null") return headers["sec-fetch-site"] === "same-origin";
  const origin = URL.parse(headers.origin ?? "");
  return origin !== null && (origin.origin === new URL(controlUrl).origin || origin.host === headers.host);
}

const nonceName = "form nonce";
const nonceMs = 60 * 60 * 1000;

/** Creates a nonce that is valid for an hour and for this person's page. It is sealed, so none needs to be stored. */
export function makeNonce({ vault, clock }: HandlerPlatform, key: string): string {
  return vault.seal(key, nonceName, String(clock.now().getTime() + nonceMs)).toString("base64url");
}

export function isNonce({ vault, clock }: HandlerPlatform, key: string, nonce: string): boolean {
  return attempt(
    () => Number(vault.open(key, nonceName, Buffer.from(nonce, "base64url"))) > clock.now().getTime(),
    false,
  );
}
