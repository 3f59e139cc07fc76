import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeCertificate } from "../../src/ports/edge-stage.suite.ts";

/**
 * Starts an ACME authority that registers accounts, refuses every order with a rate limit, and suggests when to renew a certificate. Debian's
 * pebble supports neither rate limits nor renewal suggestions.
 */
export async function startLimitedAuthority(retryAfterSeconds: number, renewal?: { start: Date; end: Date }) {
  const askedFor: string[] = [];
  const { chain_pem: cert, key_pem: key } = await makeCertificate(["localhost"]);
  const dir = await mkdtemp(join(tmpdir(), "berth-authority-"));
  const caFile = join(dir, "ca.pem");
  await writeFile(caFile, cert);
  const server = createServer({ cert, key }, (request, response) => {
    const base = `https://localhost:${(server.address() as AddressInfo).port}`;
    const json = (status: number, body: object, headers = {}) =>
      response
        .writeHead(status, { "content-type": "application/json", "replay-nonce": "AAAA", ...headers })
        .end(JSON.stringify(body));
    request.resume();
    if (request.url === "/dir") {
      const urls = { newNonce: `${base}/nonce`, newAccount: `${base}/account`, newOrder: `${base}/order` };
      return json(200, renewal === undefined ? urls : { ...urls, renewalInfo: `${base}/renewal` });
    }
    if (request.url?.startsWith("/renewal/") === true) {
      askedFor.push(request.url.slice("/renewal/".length));
      return json(200, { suggestedWindow: renewal });
    }
    if (request.url === "/account") return json(201, { status: "valid" }, { location: `${base}/account/1` });
    if (request.url !== "/order") return json(200, {});
    const type = "urn:ietf:params:acme:error:rateLimited";
    const detail = "too many certificates already issued";
    return json(429, { type, detail }, { "retry-after": `${retryAfterSeconds}` });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    caFile,
    /** The RFC 9773 identifiers of the certificates whose renewal information clients requested. */
    askedFor,
    directory: `https://localhost:${(server.address() as AddressInfo).port}/dir`,
    async close() {
      server.closeAllConnections();
      server.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
