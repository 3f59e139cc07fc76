import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { testFolder } from "../../../test/support/test-folder.ts";
import { openBuildSession } from "./open-build-session.ts";
import { fileEntry, sendFiles } from "./send-files.ts";

test("a builder that reads slowly gets no more than it takes", async () => {
  const stream = Object.assign(new PassThrough({ highWaterMark: 1 }), { respond: () => {} });
  let sent = 0;
  const entries = function* () {
    for (; sent < 100; sent += 1) yield fileEntry(`file-${sent}`, "text");
  };
  void sendFiles(stream as unknown as ServerHttp2Stream, entries());
  await sleep(20);
  assert.ok(sent < 5, String(sent));
  stream.resume();
  await sleep(20);
  assert.equal(sent, 100);
});

test("a builder does not wait for files that cannot be read", { timeout: 10_000 }, async (t) => {
  const socketPath = join(testFolder("session"), "engine.sock");
  const engine = createServer().listen(socketPath);
  t.after(() => engine.close());
  await once(engine, "listening");
  const upgraded = once(engine, "upgrade") as Promise<[unknown, Socket]>;
  const answers = { secrets: new Map(), context: "/nowhere", dockerfile: "", credentials: () => undefined };
  const opening = openBuildSession(socketPath, answers);
  const [, socket] = await upgraded;
  socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
  const session = await opening;
  t.after(() => session.close());
  const buildkit = connect("http://engine", { createConnection: () => socket });
  t.after(() => buildkit.destroy());
  const asked = buildkit.request({ ":method": "POST", ":path": "/moby.filesync.v1.FileSync/DiffCopy" });
  asked.on("error", () => {});
  asked.resume();
  await once(asked, "close");
});
