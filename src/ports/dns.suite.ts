import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startDnsServer, type TestDnsServer } from "../../test/support/dns-server.ts";
import type { Dns } from "./dns.ts";

/**
 * The rules that every DNS adapter obeys. `makeDns` creates one that queries the server at this address, with a time limit in milliseconds.
 */
export function dnsSuite(name: string, makeDns: (server: string, timeoutMs: number) => Dns): void {
  describe(`dns ${name}`, () => {
    let server: TestDnsServer;
    let dns: Dns;
    before(async () => {
      server = await startDnsServer();
      dns = makeDns(server.address, 10_000);
    });
    after(() => server.close());
    const sorted = async (hostname: string) => {
      const answer = await dns.addresses(hostname);
      return answer.outcome === "found" ? answer.values.toSorted() : answer.outcome;
    };

    test("all addresses of both families are found, behind aliases too", async () => {
      server.set("app.test", { type: "A", value: "192.0.2.1" }, { type: "A", value: "192.0.2.2" });
      server.set("six.test", { type: "AAAA", value: "2001:db8::1" });
      server.set("www.test", { type: "CNAME", value: "next.test" });
      server.set("next.test", { type: "CNAME", value: "app.test" });
      assert.deepEqual(await sorted("app.test"), ["192.0.2.1", "192.0.2.2"]);
      assert.deepEqual(await sorted("six.test"), ["2001:db8::1"]);
      assert.deepEqual(await sorted("www.test"), ["192.0.2.1", "192.0.2.2"]);
    });

    test("a name that does not exist and one without such records both have none", async () => {
      server.set("text.test", { type: "TXT", value: "hello" });
      assert.equal(await sorted("missing.test"), "none");
      assert.equal(await sorted("text.test"), "none");
      assert.deepEqual(await dns.texts("missing.test"), { outcome: "none" });
    });

    test("a change is seen at once", async () => {
      server.set("moving.test", { type: "A", value: "192.0.2.1" });
      assert.deepEqual(await sorted("moving.test"), ["192.0.2.1"]);
      server.set("moving.test", { type: "A", value: "192.0.2.9" });
      assert.deepEqual(await sorted("moving.test"), ["192.0.2.9"]);
      server.set("moving.test");
      assert.equal(await sorted("moving.test"), "none");
    });

    test("the parts of a TXT record are one text, and each record is one", async () => {
      const parts = ["a".repeat(255), "b".repeat(10)];
      server.set("_berth.app.test", { type: "TXT", value: parts }, { type: "TXT", value: "second" });
      const answer = await dns.texts("_berth.app.test");
      assert.equal(answer.outcome, "found");
      assert.deepEqual(answer.outcome === "found" && answer.values.toSorted(), [parts.join(""), "second"]);
    });

    test("an answer too large for UDP is fetched over TCP", async () => {
      const values = Array.from({ length: 8 }, (_, index) => `${index}${"x".repeat(200)}`);
      server.set("large.test", ...values.map((value) => ({ type: "TXT" as const, value })));
      const answer = await dns.texts("large.test");
      assert.deepEqual(answer.outcome === "found" && answer.values.toSorted(), values);
      assert.ok(server.asked.includes("TXT large.test tcp"));
    });

    for (const fault of ["servfail", "refused"] as const) {
      test(`${fault} is no answer, and above all not "none"`, async () => {
        server.fail(`${fault}.test`, fault);
        assert.deepEqual(await dns.addresses(`${fault}.test`), { outcome: "unavailable" });
        assert.deepEqual(await dns.texts(`${fault}.test`), { outcome: "unavailable" });
      });
    }

    for (const fault of ["silent", "garbage"] as const) {
      test(`a server that answers with ${fault === "silent" ? "silence" : "nonsense"} is given up in time`, async () => {
        server.fail(`${fault}.test`, fault);
        const hasty = makeDns(server.address, 200);
        assert.deepEqual(await hasty.addresses(`${fault}.test`), { outcome: "unavailable" });
      });
    }

    test("a server that is not there is no answer", async () => {
      const gone = await startDnsServer();
      await gone.close();
      assert.deepEqual(await makeDns(gone.address, 1000).addresses("app.test"), { outcome: "unavailable" });
    });
  });
}
