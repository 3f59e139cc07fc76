import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nsupdateBin, startKnot, withoutKnot } from "../../../test/support/knot.ts";
import { dnsProviderSuite } from "../../ports/dns-provider.suite.ts";
import { createRfc2136DnsProvider, nsupdateCommand, updateText } from "./rfc2136-dns-provider.ts";

describe("updates of a zone on Knot DNS", { skip: withoutKnot }, () => {
  dnsProviderSuite("RFC 2136", async () => {
    const knot = await startKnot("example.com");
    const at = { host: "127.0.0.1", port: knot.port, nsupdateBin, spreadMs: 0 };
    return {
      ...{ zone: knot.zone, texts: (name: string) => knot.texts(name), close: () => knot.close() },
      provider: createRfc2136DnsProvider({ ...at, keyFile: knot.keyFile }),
      stranger: createRfc2136DnsProvider({ ...at, keyFile: knot.wrongKeyFile }),
    };
  });
});

const server = { host: "192.0.2.1", port: 5353 };
const record = { name: "_acme-challenge.apps.example.com", value: "a-_b" };

test("nsupdate gets the key by its file, and one change on its standard input", () => {
  assert.deepEqual(nsupdateCommand("/usr/bin/nsupdate", "/etc/key").args, ["-v", "-t", "10", "-k", "/etc/key"]);
  const added = 'server 192.0.2.1 5353\nupdate add _acme-challenge.apps.example.com. 60 TXT "a-_b"\nsend\n';
  assert.equal(updateText(server, "add", record), added);
  const removed = 'server 192.0.2.1 5353\nupdate delete _acme-challenge.apps.example.com. TXT "a-_b"\nsend\n';
  assert.equal(updateText(server, "delete", record), removed);
});

test("what an authority sends cannot become another command", () => {
  for (const value of ['a"\nupdate delete example.com. SOA', "a b", "", "a\\"])
    assert.throws(() => updateText(server, "add", { ...record, value }), /not a record/);
  assert.throws(() => updateText(server, "add", { ...record, name: "a\nquit" }), /not a record/);
});
