import assert from "node:assert/strict";
import { createServer as createTcp, type AddressInfo, type Server } from "node:net";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { guardMs } from "../../test/support/eventually.ts";
import { probeHealth, probeInstance } from "./probe-health.ts";
import { exitFailure, probeFailure, releaseCommandFailure } from "./releases/release-failures.ts";

const servers: Server[] = [];
after(() => {
  for (const server of servers) server.close();
});

async function listening(server: Server): Promise<{ host: string; port: number }> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
}

const answering = (status: number) =>
  listening(
    createServer((request, response) =>
      response.writeHead(request.url === "/ok" ? 200 : status, { location: "/ok" }).end(),
    ),
  );
const ask = (address: { host: string; port: number }, path: string | null, timeoutMs = guardMs) =>
  probeHealth({ address, hostname: "demo.localhost", path, timeoutMs });

test("without a health path anything below 500 is healthy", async () => {
  for (const status of [200, 302, 404, 499])
    assert.deepEqual(await ask(await answering(status), null), { outcome: "healthy" });
  assert.deepEqual(await ask(await answering(500), null), { outcome: "status", status: 500, said: "" });
});

test("the first line of an unhealthy answer is told, unless it is markup", async () => {
  const saying = (type: string) =>
    listening(createServer((_, response) => response.writeHead(500, { "content-type": type }).end("no table\nmore")));
  const found = await ask(await saying("text/plain"), null);
  assert.deepEqual(found, { outcome: "status", status: 500, said: "no table" });
  assert.match(
    probeFailure(found, { port: 3000, path: null, budgetMs: 60_000, listening: [] }).summary,
    /answered 500 for 60 s: no table$/,
  );
  assert.deepEqual(await ask(await saying("text/html"), null), { outcome: "status", status: 500, said: "" });
  const endless = await listening(
    createServer((_, response) => response.writeHead(500).write("x".repeat(300), () => {})),
  );
  assert.deepEqual(await ask(endless, null), { outcome: "status", status: 500, said: "x".repeat(200) });
});

test("with a health path only 200 to 399 is healthy, and redirects are not followed", async () => {
  for (const status of [200, 302, 399])
    assert.deepEqual(await ask(await answering(status), "/health"), { outcome: "healthy" });
  for (const status of [404, 503])
    assert.deepEqual(await ask(await answering(status), "/health"), { outcome: "status", status, said: "" });
});

test("nobody listening, no answer and no HTTP are told apart", async () => {
  const silent = await listening(createTcp(() => {}));
  assert.deepEqual(await ask(silent, null, 300), { outcome: "timeout" });
  const closing = await listening(createTcp((socket) => socket.destroy()));
  assert.equal((await ask(closing, null)).outcome, "broken");
  const gone = await listening(createTcp());
  await new Promise((resolve) => servers.pop()?.close(resolve));
  assert.deepEqual(await ask(gone, null), { outcome: "refused" });
});

test("the check of an image counts after an answer at the port, and a health path replaces it", async () => {
  const failed = { outcome: "failed", detail: "ended with exit code 1: no" } as const;
  const runtime = { checkHealth: async () => failed };
  const instance = { workload_id: "dep", ordinal: 0, attempt: 1 };
  const address = await answering(200);
  const probe = (path: string | null) =>
    probeInstance(runtime, instance, { address, hostname: "demo.localhost", path, timeoutMs: guardMs });
  const found = await probe(null);
  assert.deepEqual(found, { outcome: "check_failed", detail: failed.detail });
  assert.deepEqual(await probe("/ok"), { outcome: "healthy" });
  const { code, summary } = probeFailure(found, { port: 3000, path: null, budgetMs: 60_000, listening: [] });
  assert.equal(code, "image_check_failed");
  assert.match(summary, /HEALTHCHECK of the image failed for 60 s; the last one ended with exit code 1: no/);
});

test("the classic mistakes have codes of their own, and a slow start is not a wrong port", () => {
  const where = { port: 3000, path: "/health", budgetMs: 60_000, listening: [] };
  const codes = [
    releaseCommandFailure({ outcome: "exited", code: 1, out_of_memory: false }, "migrate")?.code,
    exitFailure({ process: "web", exit_code: 1, out_of_memory: false }).code,
    probeFailure({ outcome: "refused" }, { ...where, listening: [{ port: 4321, loopback: false }] }).code,
    probeFailure({ outcome: "refused" }, where).code,
    probeFailure({ outcome: "status", status: 503, said: "" }, where).code,
    probeFailure({ outcome: "timeout" }, where).code,
  ];
  assert.deepEqual(codes, [
    "release_failed",
    "crash_on_boot",
    "wrong_port",
    "not_listening",
    "health_check_failed",
    "health_check_timeout",
  ]);
});

test("a broken connection is a wrong port only if the application listens elsewhere", () => {
  const where = { port: 3000, path: null, budgetMs: 60_000 };
  const codeWith = (...ports: readonly number[]) => {
    const listening = ports.map((port) => ({ port, loopback: false }));
    return probeFailure({ outcome: "broken", detail: "ECONNRESET" }, { ...where, listening }).code;
  };
  assert.deepEqual(
    [codeWith(4321), codeWith(3000, 4321), codeWith()],
    ["wrong_port", "health_check_broken", "health_check_broken"],
  );
});

test("a wrong port is named, and a right one that only the application itself reaches", () => {
  const where = { port: 3000, path: null, budgetMs: 60_000 };
  const told = (...listening: { port: number; loopback: boolean }[]) =>
    probeFailure({ outcome: "refused" }, { ...where, listening }).summary;
  assert.match(told(), /listens on no port/);
  assert.match(probeFailure({ outcome: "refused" }, { ...where, listening: [] }).hint ?? "", /--start-seconds 180/);
  assert.match(
    told({ port: 5000, loopback: false }, { port: 9229, loopback: true }),
    /port 5000, 127\.0\.0\.1:9229 instead/,
  );
  assert.match(told({ port: 3000, loopback: true }), /127\.0\.0\.1:3000, .* 0\.0\.0\.0/);
  const elsewhere = [
    { port: 3000, loopback: false },
    { port: 9229, loopback: true },
  ];
  assert.match(told(...elsewhere), /\[::\]:3000 for IPv6 alone, .* 0\.0\.0\.0/);
});
