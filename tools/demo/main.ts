import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { start } from "../../src/kit/exec.ts";
import { startDnsServer } from "../../test/support/dns-server.ts";
import { startPebble, withoutPebble } from "../../test/support/pebble.ts";

const zone = "shop.test";

/** npm run demo:https: starts a platform on this machine that orders certificates from a test authority for the names of a zone. Ctrl-C ends it. */
async function main(): Promise<void> {
  if (withoutPebble !== false) throw new Error("pebble is not installed: apt-get install pebble");
  const given = process.env;
  const { BERTH_DATA: dataDir = join(homedir(), ".berth-https"), BERTH_EDGE_PORT: edgePort = "8080" } = given;
  const tlsPort = given["BERTH_EDGE_TLS_PORT"] ?? "8443";
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const dns = await startDnsServer();
  for (const name of [zone, `*.${zone}`]) dns.set(name, { type: "A", value: "127.0.0.1" });
  const pebble = await startPebble({ dnsServer: dns.address, httpPort: Number(edgePort) });
  const roots = join(dataDir, "authority.pem");
  await writeFile(roots, await pebble.roots());
  process.stdout.write(instructions({ dataDir, roots, tlsPort, httpPort: given["BERTH_HTTP_PORT"] ?? "4000" }));
  const settings = {
    ...{ BERTH_DATA: dataDir, BERTH_EDGE_PORT: edgePort, BERTH_EDGE_TLS_PORT: tlsPort, BERTH_DNS_SERVERS: dns.address },
    ...{ BERTH_PUBLIC_ADDRESSES: "127.0.0.1", BERTH_ACME_HTTP_PORT: edgePort },
    ...{ BERTH_ACME_DIRECTORY: pebble.directory, BERTH_ACME_CA_FILE: pebble.caFile },
  };
  const berthd = join(import.meta.dirname, "../../bin/berthd");
  const env = { ...(given as Record<string, string>), ...settings };
  const child = start({ file: berthd, args: ["start"] }, { env });
  child.stdout.pipe(process.stdout);
  child.stderr.pipe(process.stderr);
  // Ctrl-C reaches the platform, too; wait until it has ended its applications.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  await new Promise((resolve) => child.once("close", resolve));
  await Promise.all([pebble.stop(), dns.close()]);
}

function instructions(at: { dataDir: string; roots: string; tlsPort: string; httpPort: string }): string {
  const { dataDir, roots, tlsPort, httpPort } = at;
  return `Every name below ${zone} leads to this machine, and a test authority (pebble) signs for it. Once the example is live, in another terminal:
  export BERTH_URL=http://127.0.0.1:${httpPort} BERTH_TOKEN=$(cat ${join(dataDir, "admin-token")})
  bin/berth domains add www.${zone} --wait --project example
  curl --cacert ${roots} --resolve www.${zone}:${tlsPort}:127.0.0.1 https://www.${zone}:${tlsPort}/
`;
}

main().catch((error: unknown) => {
  process.stderr.write(`demo: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
