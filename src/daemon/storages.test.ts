import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { StartRefused } from "./start-refused.ts";
import { storagesOf } from "./storages.ts";

const none = {
  s3Endpoint: null,
  s3Bucket: null,
  s3Region: "us-east-1",
  s3Prefix: "berth/",
  s3AccessKeyId: null,
  s3SecretKey: null,
  s3SecretKeyFile: null,
};
const all = {
  ...none,
  s3Endpoint: "https://s3.test",
  s3Bucket: "b",
  s3AccessKeyId: "id",
  s3SecretKey: "planted-secret",
};

test("files go to the disk unless a bucket is configured, and older ones on the disk stay within reach", () => {
  assert.equal(storagesOf(none, "/nowhere").standard, "disk");
  const both = storagesOf(all, "/nowhere");
  assert.equal(both.standard, "s3");
  assert.deepEqual(Object.keys(both.named), ["disk", "s3"]);
});

test("half a configuration is refused by naming what is missing, without the secret", () => {
  assert.throws(
    () => storagesOf({ ...all, s3Bucket: null }, "/nowhere"),
    (error) => error instanceof StartRefused && /BERTH_S3_BUCKET/.test(error.message) && !/planted/.test(error.message),
  );
  assert.throws(() => storagesOf({ ...all, s3Endpoint: "s3.test" }, "/nowhere"), StartRefused);
});

test("the secret may come from a file", () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-secret-"));
  try {
    const s3SecretKeyFile = join(dir, "secret");
    const config = { ...all, s3SecretKey: null, s3SecretKeyFile };
    assert.throws(() => storagesOf(config, "/nowhere"), StartRefused);
    writeFileSync(s3SecretKeyFile, "from-a-file\n");
    assert.equal(storagesOf(config, "/nowhere").standard, "s3");
  } finally {
    rmSync(dir, { recursive: true });
  }
});
