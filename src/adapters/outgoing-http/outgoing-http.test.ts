import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { createAddressGuard } from "../../kit/reachable-addresses.ts";
import { createOutgoingHttp } from "./outgoing-http.ts";

const closing: (() => void)[] = [];
after(() => closing.forEach((close) => close()));

/** A server on loopback, and the requests that it received. */
async function receiver(
  answer: (request: IncomingMessage, response: ServerResponse) => void = (_, it) => it.end("ok"),
) {
  const received: { readonly host: string | undefined; readonly body: string }[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      received.push({ host: request.headers.host, body });
      answer(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => (server.closeAllConnections(), server.close()));
  return { port: (server.address() as AddressInfo).port, received };
}

const never = new AbortController().signal;
const send = { headers: { "content-type": "text/plain" }, body: "héllo", timeoutMs: 120_000, excerptBytes: 64 };
const loopback = createAddressGuard(["127.0.0.1"]);
const resolve = async () => ["127.0.0.1"];

test("a body arrives whole at the address that was looked up, with the name as its host", async () => {
  const { port, received } = await receiver();
  const outgoing = createOutgoingHttp({ resolve, mayReach: loopback });
  const outcome = await outgoing.send({ ...send, url: `http://chat.test:${port}/hook?x=1` }, never);
  assert.deepEqual(outcome, { outcome: "answered", status: 200, excerpt: "ok" });
  assert.deepEqual(received, [{ host: `chat.test:${port}`, body: "héllo" }]);
});

test("private addresses are not called, by name or by any spelling of the number", async () => {
  const { port, received } = await receiver();
  const outgoing = createOutgoingHttp({ resolve, mayReach: createAddressGuard([]) });
  for (const host of ["chat.test", "127.0.0.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"]) {
    const outcome = await outgoing.send({ ...send, url: `http://${host}:${port}/` }, never);
    assert.ok(outcome.outcome === "failed" && outcome.reason.includes("private"), host);
  }
  assert.equal(received.length, 0);
});

test("a name is looked up once, so that its second answer leads nowhere", async () => {
  const { port, received } = await receiver();
  let lookups = 0;
  const rebinding = async () => ((lookups += 1) === 1 ? ["127.0.0.1"] : ["127.0.0.2"]);
  const outgoing = createOutgoingHttp({ resolve: rebinding, mayReach: loopback });
  await outgoing.send({ ...send, url: `http://chat.test:${port}/` }, never);
  assert.deepEqual([lookups, received.length], [1, 1]);
});

test("a redirect is an answer and is not followed", async () => {
  const elsewhere = await receiver();
  const location = `http://127.0.0.1:${elsewhere.port}/`;
  const { port } = await receiver((_, response) => response.writeHead(307, { location }).end());
  const outcome = await createOutgoingHttp({ resolve, mayReach: loopback }).send(
    { ...send, url: `http://chat.test:${port}/` },
    never,
  );
  assert.deepEqual(outcome, { outcome: "answered", status: 307, excerpt: "" });
  assert.equal(elsewhere.received.length, 0);
});

test("of an endless answer the beginning is read, cut between characters", async () => {
  const { port } = await receiver((_, response) => {
    const timer = setInterval(() => response.write("é".repeat(10_000)), 1);
    response.on("close", () => clearInterval(timer));
  });
  const outcome = await createOutgoingHttp({ resolve, mayReach: loopback }).send(
    { ...send, excerptBytes: 5, url: `http://chat.test:${port}/` },
    never,
  );
  assert.deepEqual(outcome, { outcome: "answered", status: 200, excerpt: "éé" });
});

test("a receiver that is silent, refuses, or has no name is a failure with a sentence that holds no part of the address", async () => {
  const silent = await receiver(() => {});
  const outgoing = createOutgoingHttp({ resolve, mayReach: loopback });
  const late = await outgoing.send({ ...send, timeoutMs: 200, url: `http://chat.test:${silent.port}/s3cret` }, never);
  assert.deepEqual(late, { outcome: "failed", reason: "The receiver did not answer in time." });
  const refused = await outgoing.send({ ...send, url: "http://chat.test:1/s3cret" }, never);
  assert.deepEqual(refused, { outcome: "failed", reason: "The receiver refused the connection." });
  const nameless = createOutgoingHttp({ resolve: async () => [], mayReach: loopback });
  const unknown = await nameless.send({ ...send, url: "http://chat.test/s3cret" }, never);
  assert.deepEqual(unknown, { outcome: "failed", reason: "The name of the host was not found." });
});
