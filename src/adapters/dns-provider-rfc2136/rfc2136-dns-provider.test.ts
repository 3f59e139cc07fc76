import { describe } from "node:test";
import { nsupdateBin, startKnot, withoutKnot } from "../../../test/support/knot.ts";
import { dnsProviderSuite } from "../../ports/dns-provider.suite.ts";
import { createRfc2136DnsProvider } from "./rfc2136-dns-provider.ts";

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
