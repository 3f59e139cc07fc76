import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { HttpsNames } from "../features/certificates/certificates.ts";
import { StartRefused, readConfig } from "./config.ts";
import { domainSettingsOf, storagesOf } from "./wire.ts";

const settings = (environment: Record<string, string>) => {
  const config = readConfig({ BERTH_DATA: "/tmp/x", ...environment });
  const { publicAddresses, isPublic } = domainSettingsOf(config, new HttpsNames());
  return [publicAddresses, isPublic];
};

test("a platform that listens for its own machine alone has no address to publish, unless it is told one", () => {
  assert.deepEqual(settings({}), [["127.0.0.1"], false]);
  assert.deepEqual(settings({ BERTH_PUBLIC_ADDRESSES: "127.0.0.1" }), [["127.0.0.1"], true]);
  assert.deepEqual(settings({ BERTH_LISTEN: "192.0.2.7" }), [["192.0.2.7"], true]);
});

const dir = mkdtempSync(join(tmpdir(), "berth-secret-"));
after(() => rmSync(dir, { recursive: true }));
const s3SecretKeyFile = join(dir, "secret");
writeFileSync(s3SecretKeyFile, "planted-secret\n");
const none = { s3Url: null, s3SecretKeyFile: null, dataDir: "/nowhere" };
const all = { s3Url: "https://id@s3.test/bucket/berth/?region=eu-central-1", s3SecretKeyFile, dataDir: "/nowhere" };

test("files go to the disk unless a bucket is configured, and older ones on the disk stay within reach", () => {
  assert.equal(storagesOf(none).standard, "disk");
  const both = storagesOf(all);
  assert.equal(both.standard, "s3");
  assert.deepEqual(Object.keys(both.named), ["disk", "s3"]);
});

test("half a configuration and a wrong one are refused by naming the setting, without the secret", () => {
  const wrong = [
    { ...all, s3Url: null },
    { ...all, s3SecretKeyFile: null },
    { ...all, s3SecretKeyFile: join(dir, "missing") },
    ...["s3.test", "https://s3.test/bucket", "https://id:planted@s3.test/bucket", "https://id@s3.test/"].map(
      (s3Url) => ({ ...all, s3Url }),
    ),
  ];
  for (const config of wrong)
    assert.throws(
      () => storagesOf(config),
      (error) => error instanceof StartRefused && /BERTH_S3_/.test(error.message) && !/planted/.test(error.message),
    );
});
