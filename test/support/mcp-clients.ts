import { Client as NewClient, StreamableHTTPClientTransport as NewTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import assert from "node:assert/strict";
import { answerOf, type consentBrowser } from "./consent.ts";

/** Where the programs of tests receive the answer about a consent. */
export const redirect = "http://127.0.0.1:33418/callback";

/** What an SDK keeps while it signs in; `url` is where it sends the browser. */
function provider(clientMetadataUrl?: string) {
  const kept: Record<string, unknown> = {};
  return {
    kept,
    ...(clientMetadataUrl && { clientMetadataUrl }),
    redirectUrl: redirect,
    clientMetadata: { client_name: "An SDK", redirect_uris: [redirect], application_type: "native" },
    state: () => "st",
    clientInformation: () => kept["client"],
    saveClientInformation: (client: object) => void (kept["client"] = client),
    tokens: () => kept["tokens"],
    saveTokens: (tokens: object) => void (kept["tokens"] = tokens),
    codeVerifier: () => kept["verifier"],
    saveCodeVerifier: (verifier: string) => void (kept["verifier"] = verifier),
    redirectToAuthorization: (url: URL) => void (kept["url"] = url),
    saveDiscoveryState: (state: object) => void (kept["state"] = state),
    discoveryState: () => kept["state"],
  };
}

/** Both generations of the SDK for clients. */
const generations = {
  "SDK 1": {
    client: () => new OldClient({ name: "old", version: "1" }),
    transport: (url: URL, authProvider: never) => new OldTransport(url, { authProvider }),
  },
  "SDK 2": {
    client: () => new NewClient({ name: "new", version: "1" }, { versionNegotiation: { mode: "auto" } }),
    transport: (url: URL, authProvider: never) => new NewTransport(url, { authProvider }),
  },
};

/** Connects a client from the platform's address alone: discovery, registration or a document, and consent in the browser. */
export async function connectFromNothing(
  generation: keyof typeof generations,
  baseUrl: string,
  browser: ReturnType<typeof consentBrowser>,
  document?: string,
) {
  const make = generations[generation];
  const given = provider(document);
  const transport = () => make.transport(new URL("/mcp", baseUrl), given as never);
  const first = transport();
  await assert.rejects(make.client().connect(first as never), /nauthorized/);
  const { status, headers } = await browser.decide(given.kept["url"] as URL);
  assert.equal(status, 303);
  const answer = answerOf(headers);
  assert.deepEqual([answer.get("state"), answer.get("iss")], ["st", baseUrl]);
  await first.finishAuth((generation === "SDK 2" ? answer : answer.get("code")) as never);
  const client = make.client();
  await client.connect(transport() as never);
  return client;
}
