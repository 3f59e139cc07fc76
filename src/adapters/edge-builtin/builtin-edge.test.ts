import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { silentLog } from "../../kit/log.ts";
import { edgeSuite } from "../../ports/edge.suite.ts";
import { suiteMaxBodyBytes } from "../../ports/edge-stage.suite.ts";
import { createBuiltinEdge } from "./builtin-edge.ts";
import { readRecord } from "./edge-record.ts";

const folders: string[] = [];
after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))));

for (const over of ["http", "https"] as const) {
  let stateDir = "";
  const makeEdge = async () => {
    stateDir = await mkdtemp(join(tmpdir(), "berth-edge-"));
    folders.push(stateDir);
    const listens = { listenHost: "127.0.0.1", listenPort: 0, listenTlsPort: 0 };
    return createBuiltinEdge({ ...listens, stateDir, maxBodyBytes: suiteMaxBodyBytes, log: silentLog });
  };
  const peakMemoryMb = async () => peakOf(readRecord(stateDir)?.identity.pid);
  edgeSuite("built in", makeEdge, { peakMemoryMb, over });
}

function peakOf(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Math.round(Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024);
}
