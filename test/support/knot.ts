import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { Resolver } from "node:dns/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runOk, start } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import type { DnsRecord } from "./dns-server.ts";
import { freePort } from "./free-port.ts";
import { guardMs } from "./eventually.ts";

const program = "/usr/sbin/knotd";
/** BIND's client for dynamic updates. */
export const nsupdateBin = "/usr/bin/nsupdate";

/** Why tests against Knot DNS are skipped; false where they run. */
export const withoutKnot = [program, nsupdateBin].every((file) => existsSync(file))
  ? false
  : "SKIPPED: Debian's packages knot and bind9-dnsutils are not installed";

/** An authoritative server of one zone, which may be the root ".", on loopback. It accepts updates signed with a key. */
export interface Knot {
  readonly port: number;
  readonly zone: string;
  readonly keyFile: string;
  /** A key with the same name and a secret that the server does not accept. */
  readonly wrongKeyFile: string;
  /** Replaces all records of a name in the zone; without records the name does not exist. */
  set(hostname: string, ...records: readonly DnsRecord[]): Promise<void>;
  texts(name: string): Promise<readonly string[]>;
  close(): Promise<void>;
}

export async function startKnot(zone: string): Promise<Knot> {
  const [dir, port] = [await mkdtemp(join(tmpdir(), "berth-knot-")), await freePort()];
  const file = (name: string) => join(dir, name);
  const secret = randomBytes(32).toString("base64");
  const keyText = (value: string) => `key "berth" {\n  algorithm hmac-sha256;\n  secret "${value}";\n};\n`;
  await writeFile(file("key"), keyText(secret));
  await writeFile(file("wrong-key"), keyText(randomBytes(32).toString("base64")));
  await writeFile(
    file("zone"),
    `$ORIGIN ${zone === "." ? "" : zone}.\n@ 60 SOA ns hostmaster 1 60 60 60 60\n@ 60 NS ns\nns 60 A 127.0.0.1\n`,
  );
  const config = `server:
  listen: 127.0.0.1@${port}
  rundir: ${dir}
database:
  storage: ${dir}
key:
  - id: berth
    algorithm: hmac-sha256
    secret: ${secret}
acl:
  - id: updates
    key: berth
    action: update
zone:
  - domain: ${zone}
    file: ${file("zone")}
    acl: updates
`;
  await writeFile(file("knot.conf"), config);
  const child = start({ file: program, args: ["-c", file("knot.conf")] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const closed = once(child, "close");
  const resolver = new Resolver({ timeout: 500, tries: 1 });
  resolver.setServers([`127.0.0.1:${port}`]);
  const answers = async () => ((await resolver.resolveSoa(zone).catch(() => undefined)) ? true : undefined);
  if ((await until(answers, { timeoutMs: guardMs })) === undefined) throw new Error(`knotd did not start: ${output}`);
  return {
    ...{ port, zone, keyFile: file("key"), wrongKeyFile: file("wrong-key") },
    async set(hostname, ...records) {
      const lines = [`delete ${hostname}.`, ...records.map((record) => `add ${hostname}. 0 ${recordText(record)}`)];
      const text = `server 127.0.0.1 ${port}\nzone ${zone}\n${lines.map((line) => `update ${line}\n`).join("")}send\n`;
      await runOk({ file: nsupdateBin, args: ["-v", "-k", file("key")] }, { stdin: text, timeoutMs: guardMs });
    },
    async texts(name) {
      const records = await resolver.resolveTxt(name).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOTFOUND" || error.code === "ENODATA") return [];
        throw error;
      });
      return records.map((parts) => parts.join(""));
    },
    async close() {
      child.kill("SIGKILL");
      await closed;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Formats a record for a zone file. */
function recordText({ type, value }: DnsRecord): string {
  if (type === "CNAME") return `CNAME ${value}.`;
  if (type === "CAA") return `CAA 0 issue "${value}"`;
  return `${type} ${[value]
    .flat()
    .map((part) => (type === "TXT" ? `"${part}"` : part))
    .join(" ")}`;
}
