import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, type ApiError } from "./client.ts";

interface Sent {
  readonly url: string;
  readonly init: RequestInit;
}

/** A client with the test's answers, which records the requests. */
function clientThat(answer: (sent: Sent) => Response | Promise<Response>, more: { timeoutMs?: number } = {}) {
  const sent: Sent[] = [];
  const fetched: typeof fetch = async (target, init) => {
    const url = target instanceof Request ? target.url : target.toString();
    const request = { url, init: init ?? {} };
    sent.push(request);
    return answer(request);
  };
  return { sent, client: createClient({ baseUrl: "http://platform:4000/", token: "secret", fetch: fetched, ...more }) };
}

const noContent = () => new Response(null, { status: 204 });

test("a call is the row's method and path, with every part of the path encoded", async () => {
  const { client, sent } = clientThat(noContent);
  const answer = await client.call("env.set", { params: { slug: "a/b?c", key: "K#" }, body: { value: "1" } });
  assert.equal(answer, undefined);
  assert.equal(sent[0]?.url, "http://platform:4000/v1/projects/a%2Fb%3Fc/env/K%23");
  assert.equal(sent[0]?.init.method, "PUT");
  assert.equal(sent[0]?.init.body, '{"value":"1"}');
  assert.equal(new Headers(sent[0]?.init.headers).get("authorization"), "Bearer secret");
});

test("a parameter that would leave its place in the path is refused before anything is sent", async () => {
  const { client, sent } = clientThat(noContent);
  for (const id of ["..", ".", ""])
    await assert.rejects(client.call("tokens.delete", { params: { id } }), { name: "InvalidCall" });
  assert.equal(sent.length, 0);
});

test("only what was given of a query is sent", async () => {
  const { client, sent } = clientThat(() => Response.json({ projects: [] }));
  await client.call("projects.list", { query: { deleted: true } });
  await client.call("projects.list", { query: { deleted: undefined } });
  assert.deepEqual(
    sent.map(({ url }) => url),
    ["http://platform:4000/v1/projects?deleted=true", "http://platform:4000/v1/projects"],
  );
});

test("fields that this version doesn't know stay in the result", async () => {
  const { client } = clientThat(() => Response.json({ projects: [], newer: true }));
  assert.deepEqual(await client.call("projects.list"), { projects: [], newer: true });
});

test("an error answer is thrown with status, code, hint, details, request id and time to wait", async () => {
  const body = { error: "Slow down.", code: "rate_limited", hint: "Wait.", details: [{ path: "a", message: "b" }] };
  const { client } = clientThat(() =>
    Response.json(body, { status: 429, headers: { "x-request-id": "r1", "retry-after": "7" } }),
  );
  await assert.rejects(client.call("me.get"), (fault: ApiError) => {
    assert.equal(fault.message, "Slow down.");
    assert.deepEqual(
      [fault.status, fault.code, fault.hint, fault.requestId, fault.retryAfterSeconds],
      [429, "rate_limited", "Wait.", "r1", 7],
    );
    assert.deepEqual(fault.details, body.details);
    return true;
  });
});

test("an answer of another server is named as such, and no redirect is followed", async () => {
  const strangers = [
    new Response("<html>", { status: 200 }),
    new Response("<html>", { status: 502 }),
    Response.json({ projects: 1 }),
    Response.redirect("http://elsewhere/", 301),
  ];
  for (const stranger of strangers) {
    const { client, sent } = clientThat(() => stranger);
    await assert.rejects(client.call("projects.list"), { name: "ConnectionError", kind: "unexpected_answer" });
    assert.equal(sent[0]?.init.redirect, "manual");
  }
});

test("a call that takes too long ends as a timeout; one that was called off ends with the caller's reason", async () => {
  const untilAborted = ({ init }: Sent) =>
    new Promise<Response>((_, reject) => {
      // A timeout's signal alone does not keep a process alive; the socket of a real request does.
      const socket = setInterval(() => {}, 1000);
      init.signal?.addEventListener("abort", () => {
        clearInterval(socket);
        reject(init.signal?.reason);
      });
    });
  await assert.rejects(clientThat(untilAborted, { timeoutMs: 5 }).client.call("me.get"), {
    name: "ConnectionError",
    kind: "timeout",
  });
  const off = new AbortController();
  const called = clientThat(untilAborted).client.call("me.get", { signal: off.signal });
  off.abort(new Error("called off"));
  await assert.rejects(called, { message: "called off" });
});

test("an address that is none, or that holds a password, is refused", () => {
  for (const baseUrl of ["platform", "ftp://platform", "http://user:pw@platform"])
    assert.throws(() => createClient({ baseUrl }), { name: "InvalidCall" });
});
