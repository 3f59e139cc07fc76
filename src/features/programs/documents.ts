import { z } from "zod";
import type { OutgoingHttp } from "../../ports/outgoing-http.ts";
import { isRedirect, shownName, type Client } from "./rules.ts";
import { parseJson } from "../../kit/parse-json.ts";

const mostBytes = 5 * 1024;
const timeoutMs = 3000;

const document = z.object({
  client_id: z.string(),
  client_name: z.unknown(),
  redirect_uris: z.array(z.string().refine(isRedirect)).min(1).max(10),
});

const hourMs = 3_600_000;
/** When each way out last failed to reach a site. */
const failedAtMs = new WeakMap<OutgoingHttp, number>();

/**
 * Returns whether programs should describe themselves by documents. Not for an hour after one could not be reached: a server may have no way
 * to the sites of programs, which then register instead.
 */
export function prefersDocuments(outgoing: OutgoingHttp): boolean {
  return (failedAtMs.get(outgoing) ?? 0) < Date.now() - hourMs;
}

/** Returns whether a client's id is the address of a document that describes it. */
export function isDocumentAddress(id: string): boolean {
  const url = id.startsWith("https://") && id.length <= 500 ? URL.parse(id) : null;
  if (url === null || url.href !== id || url.pathname === "/") return false;
  return url.username === "" && url.password === "" && url.hash === "";
}

/**
 * Reads the document of a client that did not register (OAuth Client ID Metadata Documents): at most 5 kB, without redirects, and never from a
 * private address. Returns undefined when there is none, or it describes another client.
 */
export async function readDocument(
  outgoing: OutgoingHttp,
  id: string,
  signal: AbortSignal,
): Promise<Client | undefined> {
  const answer = await outgoing.send(
    {
      method: "GET",
      url: id,
      headers: { accept: "application/json" },
      body: "",
      timeoutMs,
      excerptBytes: mostBytes + 1,
    },
    signal,
  );
  if (answer.outcome === "failed") failedAtMs.set(outgoing, Date.now());
  else failedAtMs.delete(outgoing);
  if (answer.outcome !== "answered" || answer.status !== 200 || Buffer.byteLength(answer.excerpt) > mostBytes)
    return undefined;
  const read = document.safeParse(parseJson(answer.excerpt));
  if (!read.success || read.data.client_id !== id) return undefined;
  const { client_name, redirect_uris } = read.data;
  return { id, name: shownName(client_name) || new URL(id).host, redirect_uris };
}
