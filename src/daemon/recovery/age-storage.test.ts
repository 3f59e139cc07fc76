import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { Decrypter, Encrypter, generateX25519Identity, identityToRecipient } from "age-encryption";
import { testFolder } from "../../../test/support/test-folder.ts";
import { run } from "../../kit/exec.ts";
import { storageSuite } from "../../ports/storage.suite.ts";
import { ArchiveDamaged } from "../../ports/storage.ts";
import { createDiskStorage } from "../../adapters/storage-disk/disk-storage.ts";
import { createAgeStorage } from "../../adapters/storage-age/age-storage.ts";

const [recovery, own, other] = [
  await generateX25519Identity(),
  await generateX25519Identity(),
  await generateX25519Identity(),
];
const recipients = await Promise.all([recovery, own].map(identityToRecipient));

function storageIn(dir: string, identities: readonly string[] = [recovery]) {
  const isPlain = (key: string) => key.startsWith("platform/");
  const storage = createDiskStorage({ dir });
  return createAgeStorage({ storage, recipients: async () => recipients, identities: () => identities, isPlain });
}

const source = (content: Buffer) => Readable.from([content]);

storageSuite(async () => {
  const dir = testFolder("age-suite");
  const unfinished = join(dir, ".unfinished");
  return {
    storage: storageIn(dir),
    async interruptPut(key) {
      mkdirSync(unfinished, { recursive: true });
      writeFileSync(join(unfinished, `${encodeURIComponent(key)}.${randomBytes(6).toString("hex")}`), "half a fi");
    },
    unfinished: async () => readdirSync(unfinished).length,
    close: async () => {},
  };
});

// Ends of blocks, and what surrounds them.
const sizes = [0, 1, 65_535, 65_536, 65_537, 3 * 65_536, 300_001];

test("each key alone opens a file, by the library as well", async () => {
  const dir = testFolder("age-keys");
  for (const size of sizes) {
    const content = randomBytes(size);
    await storageIn(dir).put("file", source(content));
    const stored = readFileSync(join(dir, "file"));
    for (const identity of [recovery, own]) {
      const age = new Decrypter();
      age.addIdentity(identity);
      assert.ok(content.equals(await age.decrypt(stored)), `${size} bytes`);
      assert.ok(content.equals(await buffer(await storageIn(dir, [other, identity]).open("file"))));
    }
    await assert.rejects(buffer(await storageIn(dir, [other]).open("file")), ArchiveDamaged);
    const age = new Encrypter();
    age.addRecipient(recipients[0] as string);
    writeFileSync(join(dir, "file"), await age.encrypt(content));
    assert.ok(content.equals(await buffer(await storageIn(dir).open("file"))), "what the library has made");
  }
});

const program = "/usr/bin/age";

test(
  "the program age opens what is stored, and Berth what that has made",
  { skip: !existsSync(program) && "apt-get install age" },
  async () => {
    const dir = testFolder("age-program");
    writeFileSync(join(dir, "key"), `${recovery}\n`);
    // The program makes no file of no content.
    for (const size of sizes.slice(1)) {
      const content = randomBytes(size);
      await storageIn(dir).put("file", source(content));
      const inside = (name: string) => join(dir, name);
      const opening = ["--decrypt", "--identity", inside("key"), "--output", inside("plain"), inside("file")];
      assert.deepEqual((await run({ file: program, args: opening })).stderr, "");
      assert.ok(content.equals(readFileSync(inside("plain"))), `${size} bytes`);
      const closing = ["--recipient", recipients[0] as string, "--output", inside("theirs"), inside("plain")];
      assert.deepEqual((await run({ file: program, args: closing })).stderr, "");
      assert.ok(content.equals(await buffer(await storageIn(dir).open("theirs"))));
    }
  },
);

test("a file that was flipped anywhere, cut or reordered is found; plain ones are as they were", async () => {
  const dir = testFolder("age-damage");
  const storage = storageIn(dir);
  await storage.put("file", source(randomBytes(200_000)));
  const stored = readFileSync(join(dir, "file"));
  const found = async (content: Buffer, what: string) => {
    writeFileSync(join(dir, "file"), content);
    await assert.rejects(buffer(await storage.open("file")), ArchiveDamaged, what);
  };
  for (let at = 30; at < stored.length; at += Math.ceil(stored.length / 100)) {
    const flipped = Buffer.from(stored);
    flipped[at] = (flipped[at] ?? 0) ^ 1;
    await found(flipped, `the byte at ${at}`);
  }
  const payload = stored.lastIndexOf("\n", stored.indexOf("\n--- ") + 60) + 1 + 16;
  const block = 65_536 + 16;
  for (const length of [25, payload - 20, payload, payload + 7, payload + block, stored.length - 1])
    await found(stored.subarray(0, length), `cut to ${length}`);
  const [first, second] = [0, 1].map((n) => stored.subarray(payload + n * block, payload + (n + 1) * block));
  await found(
    Buffer.concat([
      stored.subarray(0, payload),
      second as Buffer,
      first as Buffer,
      stored.subarray(payload + 2 * block),
    ]),
    "two blocks in another order",
  );
  for (const plain of [Buffer.alloc(0), Buffer.from("age"), randomBytes(100_000)]) {
    writeFileSync(join(dir, "file"), plain);
    assert.ok(plain.equals(await buffer(await storage.open("file"))));
  }
  await storage.put("platform/list.json", source(Buffer.from("[]")));
  assert.equal(readFileSync(join(dir, "platform/list.json"), "utf8"), "[]");
});
