import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chown, cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { run, runOk } from "../../kit/exec.ts";
import { silentLog } from "../../kit/log.ts";
import { sendSignal } from "../../kit/processes.ts";
import { until } from "../../kit/until.ts";
import { route } from "../../ports/edge-stage.suite.ts";
import { createBuiltinEdge, type BuiltinEdge, type BuiltinEdgeOptions } from "./builtin-edge.ts";
import { readRecord, type EdgeRecord } from "./edge-record.ts";
import { guardMs } from "../../../test/support/eventually.ts";
import { testFolder } from "../../../test/support/test-folder.ts";

const setpriv = ["/usr/bin/setpriv", "/bin/setpriv"].find((path) => existsSync(path)) ?? null;
const uid = 29_400;

describe("the edge process of a platform of root's", { skip: process.geteuid?.() !== 0 && "not root" }, async () => {
  // Has mode 0700, like a data folder.
  const dataDir = testFolder("edge");
  const stateDir = join(dataDir, "edge");
  const secret = join(dataDir, "secrets.key");
  await writeFile(secret, "the key", { mode: 0o600 });
  let edge: BuiltinEdge | undefined;
  afterEach(() => edge?.stop(0));

  async function begin(options: Partial<BuiltinEdgeOptions> = {}, create = createBuiltinEdge): Promise<EdgeRecord> {
    edge?.detach();
    edge = create({
      ...{ listenHost: "127.0.0.1", listenPort: 0, stateDir, uid, setpriv, log: silentLog },
      ...options,
    });
    await edge.apply({ version: 1, routes: [], challenge: null });
    return readRecord(options.stateDir ?? stateDir) as EdgeRecord;
  }

  test("is an ordinary user's in every thread, without capabilities and groups", async () => {
    const { identity } = await begin();
    assertPowerless(identity.pid);
  });

  test("so is its successor, which listens on the same socket, and the one that follows a crash", async () => {
    const first = await begin();
    const second = await begin({ upstreamTimeoutMs: 100_000 });
    assert.notEqual(second.identity.pid, first.identity.pid);
    assert.equal(second.port, first.port);
    assertPowerless(second.identity.pid);
    sendSignal(second.identity, "SIGKILL");
    const third = await until(() => replaced(second), { timeoutMs: guardMs });
    assert.ok(third, "it is started again");
    // The edge records the process when it starts. When the process serves requests, it has changed its user.
    await edge?.apply({ version: 2, routes: [], challenge: null });
    assertPowerless(third.identity.pid);
  });

  test("starts where its program and its folder are another user's, and so do its successors", async () => {
    const home = join(dataDir, "home");
    const checkout = join(import.meta.dirname, "../../..");
    for (const part of ["src", "node_modules/undici"]) {
      await cp(join(checkout, part), join(home, part), { recursive: true, dereference: true });
    }
    await symlink(process.execPath, join(home, "node"));
    await runOk({ file: "chown", args: ["-hR", "12345:12345", home] });
    await runOk({ file: "chmod", args: ["-R", "go=", home] });
    const module = join(home, "src/adapters/edge-builtin/builtin-edge.ts");
    const copy = (await import(pathToFileURL(module).href)) as { createBuiltinEdge: typeof createBuiltinEdge };
    const create = copy.createBuiltinEdge;
    const there = { stateDir: join(home, "edge"), nodeBin: join(home, "node") };
    await mkdir(there.stateDir, { mode: 0o700 });
    await chown(there.stateDir, 12345, 12345);
    const first = await begin(there, create);
    assertPowerless(first.identity.pid);
    const second = await begin({ ...there, upstreamTimeoutMs: 100_000 }, create);
    assert.equal(second.port, first.port);
    assertPowerless(second.identity.pid);
    const app = createHttpServer((_request, response) => void response.end("served")).listen(0, "127.0.0.1");
    await once(app, "listening");
    const target = { host: "127.0.0.1", port: (app.address() as AddressInfo).port };
    await edge?.apply({ version: 2, routes: [route("127.0.0.1", [target])], challenge: null });
    assert.equal(await (await fetch(`http://127.0.0.1:${second.port}/`)).text(), "served");
    app.close();
  });

  test("takes a port that only root may take", async () => {
    const listenPort = await freeLowPort();
    const { identity, port } = await begin({ listenPort });
    assert.equal(port, listenPort);
    assertPowerless(identity.pid);
  });

  test("reads nothing in the data folder, and an application's user cannot signal it", async () => {
    const { identity } = await begin();
    const as = (id: number, file: string, ...args: string[]) => run({ file, args }, { uid: id, gid: id });
    for (const path of [secret, join(stateDir, "settings.json"), join(stateDir, "probe-key")]) {
      assert.match((await as(uid, "cat", path)).stderr, /Permission denied/);
    }
    assert.notEqual((await as(uid + 1, "sh", "-c", `kill -0 ${identity.pid}`)).exitCode, 0);
  });

  function replaced(old: EdgeRecord): EdgeRecord | undefined {
    const record = readRecord(stateDir);
    return record?.identity.pid === old.identity.pid ? undefined : record;
  }
});

function assertPowerless(pid: number): void {
  const none = "0".repeat(16);
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const status = readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8");
    const said = (name: string) => new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*$`, "m").exec(status)?.[1];
    const ids = Array(4).fill(uid).join("\t");
    assert.deepEqual(
      [said("Uid"), said("Gid"), said("Groups"), said("CapEff"), said("CapPrm"), said("CapAmb")],
      [ids, ids, "", none, none, none],
    );
    if (setpriv !== null) assert.deepEqual([said("CapBnd"), said("NoNewPrivs")], [none, "1"]);
  }
}

/** The highest free port that only root may open. */
async function freeLowPort(): Promise<number> {
  for (let port = 1023; port > 512; port -= 1) {
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
  throw new Error("no port below 1024 is free");
}
