import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeCertificate } from "../../src/ports/edge-stage.suite.ts";
import type { Edge } from "../../src/ports/edge.ts";
import { drawCases, runsAll } from "../support/draw-cases.ts";
import { freePort } from "../support/free-port.ts";
import { startPlatform, type TestPlatform } from "./platform.ts";
import { hostnameOf, type EdgeAddress } from "./traffic.ts";

/** How visitors come to a platform's applications: by which edge, in the clear or encrypted. */
interface Way {
  readonly edge: Edge["kind"];
  readonly over: "http" | "https";
}

/** A platform, and where its visitors send their requests. */
export interface VisitedPlatform extends TestPlatform {
  readonly entrance: EdgeAddress;
}

const allWays: readonly Way[] = (["builtin", "haproxy"] as const).flatMap((edge) => [
  { edge, over: "http" },
  { edge, over: "https" },
]);

/** The ways that a file's tests go: one of those `usual`, and with `npm test -- --all` every one. */
export function drawWays(random: () => number, usual: (way: Way) => boolean = () => true): readonly Way[] {
  return runsAll ? allWays : drawCases(allWays.filter(usual), 1, random);
}

/** Starts a platform that serves these projects (or whole hostnames) in this way; over HTTPS with a certificate of the operator's own. */
export async function startVisitedPlatform(
  { edge, over }: Way,
  slugs: readonly string[],
  settings: Record<string, string> = {},
): Promise<VisitedPlatform> {
  if (over === "http") {
    const platform = await startPlatform({ BERTH_EDGE: edge, ...settings });
    return Object.assign(platform, { entrance: platform.edgePort });
  }
  const folder = mkdtempSync(join(tmpdir(), "berth-certificate-"));
  // Clients of Node.js accept no wildcard right below a top-level name.
  const { chain_pem, key_pem } = await makeCertificate(slugs.map(hostnameOf));
  writeFileSync(join(folder, "pem"), chain_pem + key_pem, { mode: 0o600 });
  const port = await freePort();
  const tls = { BERTH_EDGE_TLS_PORT: `${port}`, BERTH_CERTIFICATE_FILES: join(folder, "pem") };
  const platform = await startPlatform({ BERTH_EDGE: edge, ...tls, ...settings });
  const { destroy } = platform;
  return Object.assign(platform, {
    entrance: { port, ca: [chain_pem] },
    async destroy() {
      await destroy();
      rmSync(folder, { recursive: true, force: true });
    },
  });
}
