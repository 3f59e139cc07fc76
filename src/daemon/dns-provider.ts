import { accessSync, constants } from "node:fs";
import { createRfc2136DnsProvider } from "../adapters/dns-provider-rfc2136/rfc2136-dns-provider.ts";
import type { DnsProvider } from "../ports/dns-provider.ts";
import type { Config } from "./config.ts";
import { readDnsServer } from "./dns-servers.ts";
import { findProgram } from "./setup/find-program.ts";
import { StartRefused } from "./start-refused.ts";

/**
 * Creates the provider that changes the zone of the apps domain; null if none is configured. Throws `StartRefused` if its settings are
 * wrong.
 */
export function dnsProviderOf(config: Config): DnsProvider | null {
  const { dnsUpdateServer: server, dnsUpdateKeyFile: keyFile } = config;
  if (server === null && keyFile === null) return null;
  if (server === null || keyFile === null)
    throw new StartRefused(
      "BERTH_DNS_UPDATE_SERVER and BERTH_DNS_UPDATE_KEY_FILE belong together: set both or neither.",
    );
  const at = readDnsServer(server);
  if (at === null)
    throw new StartRefused(`BERTH_DNS_UPDATE_SERVER: ${server} is not an IP address with or without a port.`);
  assertReadable(keyFile);
  const nsupdateBin = findProgram("nsupdate", config.toolEnvironment["PATH"] ?? "");
  if (nsupdateBin === null)
    throw new StartRefused(
      "BERTH_DNS_UPDATE_SERVER is set, but nsupdate was not found on this machine. Install it: apt-get install bind9-dnsutils",
    );
  return createRfc2136DnsProvider({ ...at, keyFile, nsupdateBin, spreadMs: config.dnsUpdateWaitSeconds * 1000 });
}

function assertReadable(file: string): void {
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    throw new StartRefused(`BERTH_DNS_UPDATE_KEY_FILE cannot be read: ${(error as Error).message}.`);
  }
}
