import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { edgeSuite } from "../../ports/edge.suite.ts";
import { suiteMaxBodyBytes } from "../../ports/edge-stage.suite.ts";
import { createHaproxyEdge } from "./haproxy-edge.ts";
import { testOptions, withoutHaproxy } from "../../../test/support/haproxy.ts";

if (withoutHaproxy !== false) test("the edge suite on HAProxy", { skip: withoutHaproxy });
else for (const over of ["http", "https"] as const) runSuite(over);

function runSuite(over: "http" | "https"): void {
  const folders: string[] = [];
  after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))));
  let stateDir = "";
  const makeEdge = async () => {
    stateDir = await mkdtemp(join(tmpdir(), "berth-haproxy-"));
    folders.push(stateDir);
    return createHaproxyEdge({ ...testOptions, stateDir, maxBodyBytes: suiteMaxBodyBytes });
  };
  const allows = {
    closesKeptOnFailure: true,
    readsChunksBesideLength: true,
    passesBrokenHeads: true,
    cutsEarlyAnswers: true,
  };
  edgeSuite("HAProxy", makeEdge, { peakMemoryMb: async () => peakMemoryMb(stateDir), over, allows });
}

function peakMemoryMb(stateDir: string): number {
  const { identity } = JSON.parse(readFileSync(join(stateDir, "current.json"), "utf8")) as {
    identity: { pid: number };
  };
  const children = readFileSync(`/proc/${identity.pid}/task/${identity.pid}/children`, "utf8").trim().split(" ");
  const kilobytes = [identity.pid, ...children].map((pid) =>
    Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]),
  );
  return Math.round(kilobytes.reduce((sum, each) => sum + each, 0) / 1024);
}
