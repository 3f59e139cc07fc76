import { isIP } from "node:net";

export interface DnsServer {
  readonly host: string;
  readonly port: number;
}

/** Reads `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1` or `[2001:db8::1]:5353`; null for anything else. */
export function readDnsServer(value: string): DnsServer | null {
  const [, host = "", port = "53"] = /^\[?(.+?)\]?(?::(\d+))?$/.exec(isIP(value) === 6 ? `[${value}]` : value) ?? [];
  return isIP(host) > 0 && Number(port) >= 1 && Number(port) <= 65_535 ? { host, port: Number(port) } : null;
}

/** Returns what is wrong with a setting that names a DNS server; undefined if nothing is. */
export function faultOfDnsServer(value: string): string | undefined {
  return readDnsServer(value) === null ? "is not an IP address with or without a port" : undefined;
}
