import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { after, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Readable } from "node:stream";
import { send } from "./requests.ts";
import { createS3Storage } from "./s3-storage.ts";

const silenceMs = 600;
/** Pauses that each stay far below the limit, and exceed it together. */
const pauses = Array.from({ length: 24 }, () => silenceMs / 8);
const head = (length: number) => `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`;
const closers: (() => void)[] = [];

/** Starts a server whose connections are served by `serve`, and returns a storage in it. */
async function storageOf(serve: (socket: Socket) => unknown) {
  const sockets = new Set<Socket>();
  const server = createServer({ highWaterMark: 16 * 1024 }, (socket) => {
    sockets.add(socket.on("error", () => {}));
    serve(socket);
  }).listen(0, "127.0.0.1");
  closers.push(() => (server.close(), sockets.forEach((socket) => socket.destroy())));
  await once(server, "listening");
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const address = { endpoint, bucket: "b", prefix: "", region: "r", accessKeyId: "k", secretKey: "s", silenceMs };
  return { address, storage: createS3Storage(address), sockets };
}

const never = async () => false;
const silence = /cannot be reached \(ETIMEDOUT\)/;

describe("an object storage that falls silent", () => {
  after(() => closers.forEach((close) => close()));

  it("ends every request that it does not answer, after the last of four attempts", async () => {
    const { storage, sockets } = await storageOf((socket) => socket.resume());
    await assert.rejects(storage.open("x"), silence);
    assert.equal(sockets.size, 4);
    const others = [storage.put("x", Readable.from([Buffer.alloc(1000)])), storage.delete("x"), storage.sweep(never)];
    await Promise.all(others.map((each) => assert.rejects(each, silence)));
  });

  it("ends a request that it does not take", async () => {
    const { storage } = await storageOf((socket) => socket.pause());
    await assert.rejects(storage.put("x", Readable.from([Buffer.alloc(16_000_000)])), silence);
  });

  it("ends a response in whose middle it falls silent", async () => {
    const { storage } = await storageOf((socket) => socket.resume().write(`${head(100)}some`));
    await assert.rejects((await storage.open("x")).toArray(), silence);
    await assert.rejects(storage.sweep(never), silence);
  });

  it("ends a request by its signal, too", async () => {
    const { storage, sockets } = await storageOf((socket) => socket.resume());
    const controller = new AbortController();
    const { signal } = controller;
    const asked = [storage.open("x", signal), storage.delete("x", signal), storage.sweep(never, signal)];
    setTimeout(() => controller.abort(new Error("over")), silenceMs / 2);
    await Promise.all(asked.map((each) => assert.rejects(each, /over/)));
    assert.equal(sockets.size, 3);
  });

  it("may be slow, in both directions", async () => {
    const { storage } = await storageOf(async (socket) => {
      socket.resume().write(head(pauses.length));
      for (const pauseMs of pauses) await sleep(pauseMs).then(() => socket.write("."));
    });
    assert.equal(String(Buffer.concat(await (await storage.open("x")).toArray())), ".".repeat(pauses.length));
    // The kernel's buffers hide some pauses from the sender.
    const size = 64_000_000;
    const taking = await storageOf((socket) => {
      let [bytes, next] = [0, 0];
      socket.on("data", (chunk) => {
        bytes += chunk.length;
        if (bytes > size) socket.write(head(0));
        if (bytes < next) return;
        next += size / pauses.length;
        socket.pause();
        setTimeout(() => socket.resume(), pauses[0]);
      });
    });
    await send(taking.address, { method: "PUT", key: "x", body: new Uint8Array(size) });
  });

  it("is waited for by a reader who is slow, and is silent only where the reader waits", async () => {
    const size = 4_000_000;
    const { storage } = await storageOf((socket) => {
      socket.resume().write(head(size + 1));
      socket.write(Buffer.alloc(size));
    });
    let read = 0;
    await assert.rejects(async () => {
      for await (const chunk of await storage.open("x")) {
        if (read === 0) await sleep(silenceMs * 3);
        read += (chunk as Buffer).length;
      }
    }, silence);
    assert.equal(read, size);
  });
});
