import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { freePort } from "../../test/support/free-port.ts";
import { testFolder } from "../../test/support/test-folder.ts";
import { start } from "../kit/exec.ts";
import { silentLog } from "../kit/log.ts";
import { readConfig } from "./config.ts";
import { createEdge, earlierEdgeProcesses, endEarlierEdge, tryPort, type EdgeFoundation } from "./edge.ts";

const lacking = { haproxy: null, setpriv: null };
const advice = { part: "HAProxy 2.6 or newer", effect: "", command: "sudo apt-get install haproxy", required: true };

function refusalOf(environment: Record<string, string>, missing: EdgeFoundation["parts"]["missing"]): string {
  const config = { ...readConfig(environment), isRoot: false };
  try {
    createEdge({ config, parts: { ...lacking, missing }, log: silentLog });
  } catch (error) {
    return (error as Error).message;
  }
  return "";
}

test("a machine without HAProxy is told how to get it", () => {
  assert.match(
    refusalOf({}, [advice]),
    /could not be fetched\. Run: sudo apt-get install haproxy\. Or set BERTH_HAPROXY/,
  );
});

test("a BERTH_HAPROXY that is no HAProxy 2.6 or newer is named", () => {
  assert.match(refusalOf({ BERTH_HAPROXY: "/bin/true" }, [advice]), /^BERTH_HAPROXY=\/bin\/true is not a HAProxy/);
});

const host = "127.0.0.1";
const folder = testFolder("earlier-edge");

/** Starts what the edge of 0.1 consists of: a process that listens, and a shell that keeps its socket open until the process ends. */
async function startEarlierEdge(t: TestContext, name: string, onTerm: string) {
  const stateDir = join(folder, name);
  mkdirSync(stateDir);
  const program = join(stateDir, "main.cjs");
  const text = `const server = require("node:net").createServer((socket) => socket.on("error", () => {}).write("served"));
server.listen(Number(process.argv[3]), "${host}", () => {
  const shell = require("node:child_process").spawn("/bin/sh", ["-c", "read _"], { stdio: ["pipe", "ignore", "ignore", server._handle.fd] });
  process.on("SIGTERM", () => { ${onTerm} });
  console.log("ready");
});`;
  writeFileSync(program, text);
  const port = await freePort();
  const settings = join(stateDir, "settings.json");
  const edge = start({ file: process.execPath, args: [program, settings, `${port}`] });
  t.after(() => edge.kill("SIGKILL"));
  await once(edge.stdout, "data");
  return { stateDir, port, edge };
}

const drains = "server.close(); shell.stdin.end();";
for (const [what, onTerm] of [
  ["that drains", drains],
  ["that does not react", ""],
] as const) {
  test(`an edge of 0.1 ${what} releases its port, and its folder with keys is removed`, async (t) => {
    const { stateDir, port, edge } = await startEarlierEdge(t, what, onTerm);
    assert.deepEqual(
      earlierEdgeProcesses(stateDir).map(({ pid }) => pid),
      [edge.pid],
    );
    assert.equal(await tryPort(host, port), "EADDRINUSE");
    await endEarlierEdge(stateDir, [port], { host, log: silentLog });
    assert.equal(await tryPort(host, port), undefined);
    assert.equal(existsSync(stateDir), false);
  });
}

test("an edge of 0.1 that is stopped by a signal releases its port, too", async (t) => {
  const { stateDir, port, edge } = await startEarlierEdge(t, "stopped", drains);
  process.kill(edge.pid as number, "SIGSTOP");
  await endEarlierEdge(stateDir, [port], { host, log: silentLog });
  assert.equal(await tryPort(host, port), undefined);
});

test("without such an edge nothing happens", async () => {
  await endEarlierEdge(join(folder, "none"), [await freePort()], { host, log: silentLog });
});
