import { setTimeout as sleep } from "node:timers/promises";
import { run } from "../../kit/exec.ts";
import type { DnsProvider } from "../../ports/dns-provider.ts";
import { nsupdateCommand, updateText, type UpdateServer } from "./commands.ts";

export interface Rfc2136Options extends UpdateServer {
  /** BIND's nsupdate(1). */
  readonly nsupdateBin: string;
  /** The file with the TSIG key, as `tsig-keygen` or `keymgr -t` writes it. nsupdate reads it, so the key is in no command line. */
  readonly keyFile: string;
  /** How long the zone's other servers may take to copy a new record. */
  readonly spreadMs: number;
}

/** Changes a zone by signed dynamic updates (RFC 2136, RFC 8945), which BIND, Knot DNS and PowerDNS accept. */
export function createRfc2136DnsProvider(options: Rfc2136Options): DnsProvider {
  return {
    async addText(record) {
      await update(options, updateText(options, "add", record));
      await sleep(options.spreadMs);
    },
    removeText: (record) => update(options, updateText(options, "delete", record)),
  };
}

async function update({ nsupdateBin, keyFile, host, port }: Rfc2136Options, stdin: string): Promise<void> {
  const { exitCode, stderr } = await run(nsupdateCommand(nsupdateBin, keyFile), { stdin, timeoutMs: 30_000 });
  if (exitCode === 0) return;
  const why = stderr
    .replace(/^;+\s*/gm, "")
    .replace(/\s+/g, " ")
    .trim();
  throw new Error(`the DNS server ${host}, port ${port}, did not accept the update: ${why || "no answer"}`);
}
