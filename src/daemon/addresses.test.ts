import assert from "node:assert/strict";
import { test } from "node:test";
import { HttpsNames } from "../features/certificates/certificates.ts";
import { domainSettingsOf } from "./addresses.ts";
import { readConfig } from "./config.ts";

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
