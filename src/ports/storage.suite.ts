import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { StorageMissing, type Storage } from "./storage.ts";

/** What an adapter's test provides to the suite. */
export interface StorageFixture {
  readonly storage: Storage;
  /** Leaves behind what a `put` leaves that is killed in the middle. */
  interruptPut(key: string): Promise<void>;
  /** Returns the number of unfinished files. */
  unfinished(): Promise<number>;
  close(): Promise<void>;
}

const mib = 1024 * 1024;

/** The rules that every adapter of the port obeys. `make` is called once. */
export function storageSuite(make: () => Promise<StorageFixture>): void {
  describe("storage", () => {
    let fixture: StorageFixture;
    let storage: Storage;

    before(async () => {
      fixture = await make();
      storage = fixture.storage;
    });
    after(() => fixture.close());

    for (const size of [0, 1, 5 * mib, 40 * mib + 7]) {
      it(`gives back ${size} bytes as they were`, async () => {
        const content = randomBytes(size);
        assert.deepEqual(await storage.put(`sizes/${size}`, Readable.from(pieces(content))), { size_bytes: size });
        assert.equal(await hashOf(await storage.open(`sizes/${size}`)), hash(content));
      });
    }

    it("replaces a file", async () => {
      await storage.put("again", Readable.from([Buffer.from("first")]));
      await storage.put("again", Readable.from([Buffer.from("second")]));
      assert.equal(await textOf(await storage.open("again")), "second");
    });

    it("says what is missing", async () => {
      await assert.rejects(storage.open("nowhere/at-all"), StorageMissing);
    });

    it("deletes, also what is not there", async () => {
      await storage.put("short-lived", Readable.from([Buffer.from("x")]));
      await storage.delete("short-lived");
      await storage.delete("short-lived");
      await assert.rejects(storage.open("short-lived"), StorageMissing);
    });

    it("deletes what an interrupted call left under the key, and nothing of another key", async () => {
      await fixture.interruptPut("left/one");
      await fixture.interruptPut("left/one-more");
      await storage.delete("left/one");
      assert.equal(await fixture.unfinished(), 1);
      await storage.delete("left/one-more");
      assert.equal(await fixture.unfinished(), 0);
    });

    it("keeps nothing of a stream that broke, and says why it broke", async () => {
      const why = new Error("the source broke");
      await assert.rejects(storage.put("broken", Readable.from(breaking(why))), why);
      await assert.rejects(storage.open("broken"), StorageMissing);
      assert.equal(await fixture.unfinished(), 0);
    });

    it("keeps nothing of a call that was aborted", async () => {
      const stop = new AbortController();
      const content = Readable.from(endless(() => stop.abort(new Error("stopped"))));
      await assert.rejects(storage.put("aborted", content, stop.signal));
      assert.ok(content.destroyed, "what it read from is let go");
      await assert.rejects(storage.open("aborted"), StorageMissing);
      assert.equal(await fixture.unfinished(), 0);
    });

    it("sweeps away what a killed process left, and leaves alone what is being written", async () => {
      await fixture.interruptPut("swept/one");
      await fixture.interruptPut("swept/busy");
      await assert.rejects(storage.open("swept/one"), StorageMissing);
      assert.equal(await storage.sweep(async (key) => key === "swept/busy"), 1);
      assert.equal(await fixture.unfinished(), 1);
      assert.equal(await storage.sweep(async () => false), 1);
      assert.equal(await storage.sweep(async () => false), 0);
    });

    it("deletes and sweeps nothing more once it is aborted", async () => {
      const stopped = AbortSignal.abort(new Error("stopped"));
      await storage.put("stays", Readable.from([Buffer.from("here")]));
      await fixture.interruptPut("swept/later");
      await assert.rejects(storage.delete("stays", stopped), /stopped/);
      await assert.rejects(
        storage.sweep(async () => false, stopped),
        /stopped/,
      );
      assert.equal((await buffer(await storage.open("stays"))).toString(), "here");
      assert.equal(await fixture.unfinished(), 1);
      await storage.delete("swept/later");
    });

    for (const key of ["../outside", "/absolute", "a//b", "a/../b", "", "a b", ".hidden"]) {
      it(`refuses the key ${JSON.stringify(key)}`, async () => {
        await assert.rejects(storage.put(key, Readable.from([Buffer.from("x")])));
        await assert.rejects(storage.open(key));
      });
    }
  });
}

function* pieces(content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; at += 100_000) yield content.subarray(at, at + 100_000);
}

async function* breaking(error: Error): AsyncGenerator<Buffer> {
  for (let i = 0; i < 200; i += 1) yield randomBytes(100_000);
  throw error;
}

async function* endless(halfway: () => void): AsyncGenerator<Buffer> {
  for (let i = 0; i < 2000; i += 1) {
    if (i === 200) halfway();
    yield randomBytes(100_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function hash(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

async function hashOf(stream: Readable): Promise<string> {
  const sum = createHash("sha256");
  for await (const chunk of stream) sum.update(chunk as Buffer);
  return sum.digest("hex");
}

async function textOf(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
