import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { BucketRefused, send } from "../../src/adapters/storage-s3/requests.ts";
import { createS3Storage } from "../../src/adapters/storage-s3/s3-storage.ts";
import { storageSuite } from "../../src/ports/storage.suite.ts";
import { missingForSwift, startSwift, type SwiftServer } from "../support/swift.ts";

// Drawn with other S3 files: every run tests the same rules on the disk storage.

const bucket = "backups";
const prefix = "platform/";

describe("storage in a real S3 server", { skip: missingForSwift }, () => {
  let server: SwiftServer;

  before(async () => {
    server = await startSwift();
    await send({ ...server, bucket }, { method: "PUT" });
  });
  after(() => server?.close());

  storageSuite(async () => {
    const address = { ...server, bucket };
    const uploads = async () => {
      const { text } = await send(address, { method: "GET", query: { uploads: "" } });
      return text.split("<Upload>").length - 1;
    };
    return {
      storage: createS3Storage({ ...address, prefix }),
      async interruptPut(key) {
        await send(address, { method: "POST", key: `${prefix}${key}`, query: { uploads: "" } });
      },
      unfinished: uploads,
      close: async () => {},
    };
  });

  it("fails with a wrong secret, and the error contains neither secret nor address", async () => {
    const storage = createS3Storage({ ...server, bucket, prefix, secretKey: "a-wrong-secret" });
    const fault = await storage.put("x", Readable.from([Buffer.from("x")])).then(
      () => undefined,
      (error: unknown) => error,
    );
    assert.ok(fault instanceof BucketRefused && fault.status === 403, String(fault));
    assert.doesNotMatch(fault.message, /wrong-secret|127\.0\.0\.1/);
  });

  it("reports a server that cannot be reached", async () => {
    const storage = createS3Storage({ ...server, bucket, prefix, endpoint: "http://127.0.0.1:1" });
    await assert.rejects(storage.open("x"), /cannot be reached/);
  });
});
