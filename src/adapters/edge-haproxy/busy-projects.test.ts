import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Stage } from "../../ports/edge-stage.suite.ts";
import { createHaproxyEdge } from "./haproxy-edge.ts";
import { testOptions, withoutHaproxy } from "../../../test/support/haproxy.ts";

describe("projects with many requests", { skip: withoutHaproxy }, () => {
  let stateDir = "";
  let stage: Stage;

  before(async () => {
    stateDir = await mkdtemp(join(tmpdir(), "berth-haproxy-"));
    stage = new Stage(async () => createHaproxyEdge({ ...testOptions, stateDir, busyAbovePerSecond: 3 }));
  });
  after(async () => {
    await stage.close();
    await rm(stateDir, { recursive: true, force: true });
  });

  test("new visitors share kept connections to their own project's replica", async () => {
    const sockets = new Set<Socket>();
    const app = (words: string, at?: { host: string; port: number }) =>
      stage.app((req, res) => (sockets.add(req.socket), res.end(words)), false, at);
    const one = await app("one.test");
    await stage.serve({
      "one.test": [one],
      "two.test": [await app("two.test", { host: "127.0.0.2", port: one.port })],
    });
    const kept = stage.newAgent({ keepAlive: true, maxSockets: 4 });
    const askBoth = (times: number, agent = stage.newAgent()) =>
      Promise.all(
        Array.from({ length: times }, async (_, i) => {
          const host = i % 2 ? "one.test" : "two.test";
          assert.equal((await stage.ask({ host, agent })).body, host);
        }),
      );
    await stage.until(async () => {
      await askBoth(40, kept);
      const before = sockets.size;
      for (let i = 0; i < 5; i += 1) await askBoth(4);
      return sockets.size === before;
    });
    kept.destroy();
  });
});

describe("projects with few requests", { skip: withoutHaproxy }, () => {
  let stateDir = "";
  let stage: Stage;

  before(async () => {
    stateDir = await mkdtemp(join(tmpdir(), "berth-haproxy-"));
    stage = new Stage(async () => createHaproxyEdge({ ...testOptions, stateDir }));
  });
  after(async () => {
    await stage.close();
    await rm(stateDir, { recursive: true, force: true });
  });

  test("new visitors share kept connections for requests that may be sent twice, and one that closes fails none", async () => {
    const answered = new Map<Socket, number>();
    const app = await stage.app((req, res) => {
      const earlier = answered.get(req.socket) ?? 0;
      if (earlier === 3) return void req.socket.destroy();
      answered.set(req.socket, earlier + 1);
      res.end("answered");
    });
    await stage.serve({ "one.test": [app] });
    const ask = async (method: string) =>
      (await stage.ask({ host: "one.test", method, agent: stage.newAgent() })).status;
    const times = 40;
    for (let i = 0; i < times; i += 1) assert.equal(await ask("GET"), 200);
    assert.ok(answered.size < times / 2, `${answered.size} connections for ${times} requests`);
    const before = answered.size;
    for (let i = 0; i < times; i += 1) assert.equal(await ask("POST"), 200);
    assert.equal(answered.size, before + times);
  });
});
