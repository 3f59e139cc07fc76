import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { callCron } from "./cron-call.ts";

test("the next replica is called only if the one before did not take the request", async () => {
  let calls = 0;
  const app = createServer((_, response) => ((calls += 1), response.writeHead(500).end())).listen(0, "127.0.0.1");
  after(() => app.close());
  await once(app, "listening");
  const failing = { host: "127.0.0.1", port: (app.address() as AddressInfo).port };
  const closed = { host: "127.0.0.1", port: 1 };
  const { signal } = new AbortController();
  const targets = [closed, failing, failing];
  const answer = await callCron({ targets, path: "/", headers: {}, timeoutMs: 60_000, signal });
  assert.deepEqual([answer.status, answer.http_status, calls], ["failed", 500, 1]);
});
