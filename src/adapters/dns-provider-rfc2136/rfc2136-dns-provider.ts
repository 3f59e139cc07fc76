import { setTimeout as sleep } from "node:timers/promises";
import { run, type Command } from "../../kit/exec.ts";
import type { DnsProvider, TextRecord } from "../../ports/dns-provider.ts";

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

interface UpdateServer {
  readonly host: string;
  readonly port: number;
}

const lifetimeSeconds = 60;
const answerSeconds = 10;

/** Runs nsupdate over TCP, so that a signed response is not truncated. */
export function nsupdateCommand(nsupdateBin: string, keyFile: string): Command {
  return { file: nsupdateBin, args: ["-v", "-t", `${answerSeconds}`, "-k", keyFile] };
}

/** Returns nsupdate's input for one change; nsupdate finds the zone. A deletion names the exact record, so that other records stay. */
export function updateText(server: UpdateServer, change: "add" | "delete", { name, value }: TextRecord): string {
  if (!/^[a-z0-9_.-]+$/i.test(name) || !/^[\w+/=.-]{1,255}$/.test(value))
    throw new Error(`not a record that can be written as text: ${name} TXT ${value}`);
  const what = change === "add" ? `add ${name}. ${lifetimeSeconds}` : `delete ${name}.`;
  return `server ${server.host} ${server.port}\nupdate ${what} TXT "${value}"\nsend\n`;
}
