import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";
import { WebSocket } from "ws";
import { socketStream, type MessageSocket } from "./socket-stream.ts";

test("a message that comes together with the answer to the handshake reaches the first listener", async () => {
  const text = JSON.stringify({ type: "ready" });
  const server = createServer((socket) =>
    socket.once("data", (request) => {
      const key = /sec-websocket-key: (.*)\r\n/i.exec(request.toString())?.[1] ?? "";
      // RFC 6455, 1.3: the server's answer to the key. Then a frame: final, text, its length.
      const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
      const head = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
      socket.write(Buffer.concat([Buffer.from(head), Buffer.from([0x81, text.length]), Buffer.from(text)]));
    }),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const { onTold } = socketStream(socket);
    await once(socket, "message");
    const told: unknown[] = [];
    onTold((message) => told.push(message));
    assert.deepEqual(told, [{ type: "ready" }]);
  } finally {
    socket.terminate();
    server.close();
  }
});

test("messages that come before the first listener are kept up to a limit, and none is kept once there is one", () => {
  const parts = { send: () => {}, close: () => {}, pause: () => {}, resume: () => {} };
  const socket: MessageSocket & EventEmitter = Object.assign(new EventEmitter(), parts);
  const { onTold } = socketStream(socket);
  const send = (from: number) => {
    for (let number = from; number < from + 100; number += 1)
      socket.emit("message", Buffer.from(`{"number":${number}}`), false);
  };
  const [first, second]: [unknown[], unknown[]] = [[], []];
  send(0);
  onTold(({ number }) => first.push(number));
  assert.deepEqual(first, [...Array(16).keys()]);
  send(100);
  onTold(({ number }) => second.push(number));
  assert.deepEqual([first.length, second.length], [116, 0]);
});
