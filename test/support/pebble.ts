import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { makeCertificate } from "../../src/ports/edge-stage.suite.ts";
import { freePort } from "./free-port.ts";
import { guardMs } from "./eventually.ts";

const program = "/usr/bin/pebble";

/** Why tests against a certificate authority are skipped; false where they run. */
export const withoutPebble = existsSync(program) ? false : "SKIPPED: Debian's package pebble is not installed";

/** Pebble, Let's Encrypt's test authority, on loopback. */
export interface Pebble {
  readonly directory: string;
  readonly caFile: string;
  /** Number of orders received so far. */
  orders(): number;
  /** The root certificates that sign the issued ones, as PEM. */
  roots(): Promise<string>;
  stop(): Promise<void>;
}

export interface PebbleOptions {
  readonly dnsServer: string;
  /** The port at which it verifies HTTP challenges. */
  readonly httpPort: number;
  /** Port of its API; default: any free port. */
  readonly port?: number;
  readonly lifetimeSeconds?: number;
  /** MAC keys of the accepted external accounts, by key identifier; default: no external account is required. */
  readonly externalAccounts?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

export async function startPebble({
  dnsServer,
  httpPort,
  lifetimeSeconds = 7_776_000,
  externalAccounts,
  env = {},
  ...given
}: PebbleOptions): Promise<Pebble> {
  const dir = await mkdtemp(join(tmpdir(), "berth-pebble-"));
  const [port, management] = [given.port ?? (await freePort()), await freePort()];
  const { chain_pem, key_pem } = await makeCertificate(["localhost"]);
  const [certificate, privateKey, config] = ["ca.pem", "key.pem", "config.json"].map((name) => join(dir, name)) as [
    string,
    string,
    string,
  ];
  const listen = { listenAddress: `127.0.0.1:${port}`, managementListenAddress: `127.0.0.1:${management}` };
  const pebble = {
    ...listen,
    certificate,
    privateKey,
    httpPort,
    tlsPort: 1,
    ocspResponderURL: "",
    externalAccountBindingRequired: externalAccounts !== undefined,
    ...(externalAccounts === undefined ? {} : { externalAccountMACKeys: externalAccounts }),
  };
  await writeFile(certificate, chain_pem);
  await writeFile(privateKey, key_pem);
  await writeFile(config, JSON.stringify({ pebble: { ...pebble, certificateValidityPeriod: lifetimeSeconds } }));
  const settings = { PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "0", PEBBLE_AUTHZREUSE: "0", ...env };
  const child = start({ file: program, args: ["-config", config, "-dnsserver", dnsServer] }, { env: settings });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const closed = once(child, "close");
  const ready = await until(() => (output.includes("ACME directory available") ? true : undefined), {
    timeoutMs: guardMs,
  });
  if (ready === undefined) throw new Error(`pebble did not start: ${output}`);
  return {
    directory: `https://localhost:${port}/dir`,
    caFile: certificate,
    orders: () => output.split("POST /order-plz -> ").length - 1,
    async roots() {
      const { get } = await import("node:https");
      const answer = new Promise<string>((resolve, reject) => {
        get({ host: "localhost", port: management, path: "/roots/0", ca: chain_pem }, (response) => {
          let body = "";
          response.on("data", (chunk: Buffer) => (body += chunk.toString()));
          response.on("end", () => resolve(body));
        }).on("error", reject);
      });
      return answer;
    },
    async stop() {
      child.kill("SIGKILL");
      await closed;
      await rm(dir, { recursive: true, force: true });
    },
  };
}
