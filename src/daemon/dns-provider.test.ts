import assert from "node:assert/strict";
import { test } from "node:test";
import { readConfig } from "./config.ts";
import { dnsProviderOf } from "./dns-provider.ts";

test("half a setting of DNS updates, a wrong address or a key that cannot be read refuse the start with a sentence", () => {
  const of = (server: string, key: string) => () =>
    dnsProviderOf(readConfig({ BERTH_DNS_UPDATE_SERVER: server, BERTH_DNS_UPDATE_KEY_FILE: key }));
  assert.throws(of("192.0.2.1", ""), /belong together/);
  assert.throws(of("ns.example.com", "/nonexistent"), /not an IP address/);
  assert.throws(of("192.0.2.1:5353", "/nonexistent"), /BERTH_DNS_UPDATE_KEY_FILE cannot be read/);
  assert.equal(of("", "")(), null);
});
