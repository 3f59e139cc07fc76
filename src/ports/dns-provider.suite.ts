import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { DnsProvider } from "./dns-provider.ts";

/** A zone on a real server, and a provider that may change it. */
export interface TestZone {
  readonly provider: DnsProvider;
  /** A provider whose key the server refuses. */
  readonly stranger: DnsProvider;
  readonly zone: string;
  /** Returns the TXT records of a name from the zone's server. */
  texts(name: string): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** The rules that every DNS provider obeys. */
export function dnsProviderSuite(adapter: string, start: () => Promise<TestZone>): void {
  let zone: TestZone;
  before(async () => {
    zone = await start();
  });
  after(() => zone.close());

  test(`${adapter}: an added record is there at once, beside those of the same name`, async () => {
    const name = `_acme-challenge.apps.${zone.zone}`;
    for (const value of ["first", "second", "second"]) await zone.provider.addText({ name, value });
    assert.deepEqual((await zone.texts(name)).toSorted(), ["first", "second"]);
  });

  test(`${adapter}: exactly one record is removed, and removing it again changes nothing`, async () => {
    const name = `_acme-challenge.other.${zone.zone}`;
    for (const value of ["kept", "gone"]) await zone.provider.addText({ name, value });
    for (let i = 0; i < 2; i += 1) await zone.provider.removeText({ name, value: "gone" });
    assert.deepEqual(await zone.texts(name), ["kept"]);
  });

  test(`${adapter}: a refused change is rejected with a sentence and changes nothing`, async () => {
    const name = `_acme-challenge.refused.${zone.zone}`;
    await assert.rejects(zone.stranger.addText({ name, value: "no" }), /did not accept the update/);
    await assert.rejects(zone.provider.addText({ name: "_acme-challenge.example.net", value: "no" }), /update/);
    assert.deepEqual(await zone.texts(name), []);
  });
}
