import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createBuiltinEdge } from "../../src/adapters/edge-builtin/builtin-edge.ts";
import { createHaproxyEdge } from "../../src/adapters/edge-haproxy/haproxy-edge.ts";
import { findProgram } from "../../src/daemon/setup/find-program.ts";
import { silentLog } from "../../src/kit/log.ts";
import type { Edge } from "../../src/ports/edge.ts";
import { drawCases } from "./draw-cases.ts";

/** The edges that a file's tests run on: one at random, or every one with `npm test -- --all`. */
export function drawEdges(random: () => number): readonly Edge["kind"][] {
  return drawCases(["builtin", "haproxy"], 1, random);
}

/** Why tests on this edge are skipped; false where they run. */
export function edgeLacks(kind: Edge["kind"]): string | false {
  return kind === "haproxy" && haproxyBin === null ? "haproxy is not installed" : false;
}

const haproxyBin = findProgram("haproxy", "");

/** Starts an edge on loopback. Port 0 means any free port; without a TLS port there is no HTTPS. */
export function createTestEdge(
  kind: Edge["kind"],
  options: { readonly listenPort: number; readonly listenTlsPort?: number; readonly stateDir: string },
): Edge {
  const common = { listenTlsPort: null, ...options, listenHost: "127.0.0.1", log: silentLog };
  if (kind === "builtin") return createBuiltinEdge(common);
  const user = process.getuid?.() === 0 ? { uid: 29_301, setpriv: findProgram("setpriv", "") } : {};
  return createHaproxyEdge({ ...common, ...user, haproxyBin: haproxyBin ?? "haproxy" });
}

/** The main process of the edge with this state folder. */
export function edgePid(stateDir: string): number {
  const record = readFileSync(join(stateDir, "current.json"), "utf8");
  return (JSON.parse(record) as { identity: { pid: number } }).identity.pid;
}

/** The process that serves requests. With HAProxy that is the worker, because the main process only supervises it. */
export function servingPid(kind: Edge["kind"], stateDir: string): number {
  const pid = edgePid(stateDir);
  if (kind === "builtin") return pid;
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").at(-1));
}
