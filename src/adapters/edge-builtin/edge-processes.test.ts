// Drawn with other edge files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { once } from "node:events";
import { appendFile, mkdir, mkdtemp, readFile, rm, rmdir, stat } from "node:fs/promises";
import { Agent } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { eventually } from "../../../test/support/eventually.ts";
import { startNode } from "../../../test/support/node-process.ts";
import { silentLog } from "../../kit/log.ts";
import { isAlive, sendSignal } from "../../kit/processes.ts";
import type { RouteTable, Target } from "../../ports/edge.ts";
import { makeCertificate, route, say, silenceSocket, Stage, startLoad, text } from "../../ports/edge-stage.suite.ts";
import { createBuiltinEdge, type BuiltinEdge, type BuiltinEdgeOptions } from "./builtin-edge.ts";
import { readRecord, type EdgeRecord } from "./edge-record.ts";
import { controlSocket } from "./edge-settings.ts";

// The uid that a platform of root uses; an ordinary user's edge ignores it.
const uid = 29_300;

describe("the edge process", () => {
  let stateDir = "";
  let edges: BuiltinEdge[] = [];
  let stage: Stage;

  before(async () => {
    stateDir = await mkdtemp(join(tmpdir(), "berth-edge-"));
    stage = new Stage(async () => make());
  });
  after(async () => {
    for (const edge of edges) edge.detach();
    await stage.close();
    await rm(stateDir, { recursive: true, force: true });
  });

  function make(options: Partial<BuiltinEdgeOptions> = {}): BuiltinEdge {
    const edge = createBuiltinEdge({
      listenHost: "127.0.0.1",
      listenPort: 0,
      stateDir,
      uid,
      log: silentLog,
      ...options,
    });
    edges.push(edge);
    return edge;
  }

  /** Replaces the control plane by a new one, possibly with other settings. */
  function restart(options: Partial<BuiltinEdgeOptions> = {}): void {
    for (const edge of edges) edge.detach();
    edges = [];
    stage.use(make(options));
  }

  const record = () => readRecord(stateDir) as EdgeRecord;

  test("the edge goes on serving when the control plane is killed, and the next one adopts it", async () => {
    const app = await stage.app(say("alive"));
    const table: RouteTable = {
      version: 1,
      routes: [route("kill.test", [app])],
      challenge: null,
    };
    const child = startControlPlane(stateDir, table);
    await once(child.stdout, "data");
    const { identity } = record();
    child.kill("SIGKILL");
    await once(child, "close");
    assert.equal((await stage.ask({ host: "kill.test" })).body, "alive");
    await stage.serve({ "kill.test": [app] });
    assert.deepEqual(record().identity, identity);
  });

  test("an edge process that crashes is started again and serves the last routes", async () => {
    await stage.serve({ "crash.test": [await stage.app(say("back"))] });
    const { identity } = record();
    sendSignal(identity, "SIGKILL");
    await stage.until(
      async () => record().identity.pid !== identity.pid && (await (await stage.edge()).observe()).running,
    );
    assert.equal((await stage.ask({ host: "crash.test" })).body, "back");
  });

  test("an edge process that crashed while no control plane ran is started with the routes it had saved", async () => {
    await stage.serve({ "saved.test": [await stage.app(say("saved"))] });
    for (const edge of edges) edge.detach();
    const { identity } = record();
    sendSignal(identity, "SIGKILL");
    await stage.until(async () => !isAlive(identity));
    restart();
    // This version is older than the saved table, so the call only starts the process.
    await (await stage.edge()).apply({ version: 0, routes: [], challenge: null });
    assert.equal((await stage.ask({ host: "saved.test" })).body, "saved");
  });

  test("an edge process that a signal has stopped is continued, and no request fails", async () => {
    await stage.serve({ "stopped.test": [await stage.app(say("awake"))] });
    const { identity } = record();
    sendSignal(identity, "SIGSTOP");
    assert.equal((await stage.ask({ host: "stopped.test" })).body, "awake");
    assert.deepEqual(record().identity, identity);
  });

  for (const isNew of [false, true]) {
    const when = isNew ? "by a control plane that finds it so" : "while no route changes";
    test(`an edge process that hangs is ended and started again ${when}`, async () => {
      const app = await stage.app(say("awake"));
      await stage.serve({ "hang.test": [app] });
      const { identity } = record();
      if (isNew) for (const edge of edges) edge.detach();
      const end = await silenceSocket(controlSocket(stateDir, identity.pid));
      if (isNew) restart();
      if (isNew) await stage.serve({ "hang.test": [app] });
      await stage.until(
        async () => record().identity.pid !== identity.pid && (await (await stage.edge()).observe()).running,
      );
      assert.equal((await stage.ask({ host: "hang.test" })).body, "awake");
      end();
    });
  }

  test("a copy of the routes that can't be written keeps no table from the edge, and is written later", async () => {
    const app = await stage.app(say("served"));
    const [saved, draft] = [join(stateDir, "routes.json"), join(stateDir, `routes.json.${process.pid}.new`)];
    await mkdir(draft);
    await stage.serve({ "unsaved.test": [app] });
    assert.equal((await stage.ask({ host: "unsaved.test" })).body, "served");
    // The copy is written 100 ms later.
    await sleep(300);
    const isSaved = async () => (await readFile(saved, "utf8")).includes("unsaved.test");
    assert.equal(await isSaved(), false);
    await rmdir(draft);
    await stage.serve({ "unsaved.test": [app] });
    await eventually(isSaved, "the copy is written");
  });

  test("other settings replace the process without a failed request, on kept and on new connections", async () => {
    const apps = [await stage.app(say("a"), true), await stage.app(say("b"))];
    await stage.serve({ "over.test": apps });
    const counted = await requestsOf("prj_over.test");
    const socket = new WebSocket(`ws://${await stage.listen()}/`, { headers: { host: "over.test" } });
    await once(socket, "open");
    const [kept, fresh] = [
      startLoad(stage, "over.test"),
      startLoad(stage, "over.test", { connections: 4, keepAlive: false }),
    ];
    for (let i = 1; i <= 3; i += 1) {
      const { identity, port } = record();
      restart({ upstreamTimeoutMs: 100_000 + i });
      await stage.serve({ "over.test": apps });
      assert.notEqual(record().identity.pid, identity.pid);
      assert.equal(record().port, port);
      await Promise.all([kept.passed(50), fresh.passed(50)]);
    }
    const ended = [await kept.stop(), await fresh.stop()];
    assert.deepEqual(
      ended.flatMap((each) => each.failures),
      [],
    );
    socket.send("through the old process");
    assert.equal(String((await once(socket, "message"))[0]), "through the old process");
    socket.close();
    const all = counted + 1 + ended.reduce((sum, each) => sum + each.answered, 0);
    await stage.until(async () => (await requestsOf("prj_over.test")) === all);
  });

  test("TLS goes on when the edge crashed while no control plane ran, and through a replacement; its keys are closed to others", async () => {
    restart({ listenTlsPort: 0 });
    const secure = new Stage(() => Promise.resolve(edges[0] as BuiltinEdge), "https");
    await stage.serve({ "kept.test": [await stage.app(say("kept"))] });
    await (
      await secure.edge()
    ).applyCertificates({ version: Date.now(), certificates: [await makeCertificate(["*.test"])] });
    assert.equal((await stat(join(stateDir, "certificates.json"))).mode & 0o777, 0o600);
    for (const edge of edges) edge.detach();
    const { identity } = record();
    sendSignal(identity, "SIGKILL");
    await stage.until(async () => !isAlive(identity));
    restart({ listenTlsPort: 0 });
    secure.use(edges[0] as BuiltinEdge);
    await (await secure.edge()).apply({ version: 0, routes: [], challenge: null });
    assert.equal((await secure.ask({ host: "kept.test" })).body, "kept");
    const [load, { pid }, tlsPort] = [
      startLoad(secure, "kept.test", { keepAlive: false, connections: 4 }),
      record().identity,
      record().tls_port,
    ];
    restart({ listenTlsPort: 0, upstreamTimeoutMs: 111_000 });
    secure.use(edges[0] as BuiltinEdge);
    await (await secure.edge()).apply({ version: 0, routes: [], challenge: null });
    await load.passed(30);
    assert.deepEqual([(await load.stop()).failures, record().tls_port], [[], tlsPort]);
    assert.notEqual(record().identity.pid, pid);
    secure.agent.destroy();
  });

  test("a replaced process ends with its last connection, and gets route changes until then", async () => {
    const gate = Promise.withResolvers<void>();
    const app = await stage.app(async (_req, res) => (res.write("a"), await gate.promise, res.end("b")));
    await stage.serve({ "drain.test": [app] });
    // A kept connection might belong to a process that was replaced earlier.
    const running = await stage.open_({ host: "drain.test", agent: new Agent() });
    const { identity } = record();
    restart({ upstreamTimeoutMs: 200_000 });
    await stage.serve({ "drain.test": [] });
    assert.ok(isAlive(identity));
    assert.equal(await stage.open(app), 1);
    gate.resolve();
    assert.equal(await text(running), "ab");
    await stage.until(async () => !isAlive(identity));
  });

  test("a port in use is named with its setting, and the process that serves goes on", async () => {
    const { port, close } = await occupyPort();
    const app = await stage.app(say("still"));
    await stage.serve({ "port.test": [app] });
    const { identity } = record();
    restart({ listenPort: port });
    await assert.rejects(stage.serve({ "port.test": [app], "new.test": [app] }), /BERTH_EDGE_PORT/);
    assert.deepEqual(record().identity, identity);
    assert.equal((await stage.ask({ host: "new.test" })).body, "still");
    close();
  });

  test("a connection that a replica closed out of idleness costs no request", async () => {
    const target = await silentCloser();
    await stage.serve({ "idle.test": [target] });
    for (let i = 0; i < 5; i += 1) assert.equal((await stage.ask({ host: "idle.test" })).body, "ok");
  });

  test("an application that does not answer in time is a 504", async () => {
    restart({ upstreamTimeoutMs: 100 });
    await stage.serve({ "slow.test": [await stage.app(() => {})] });
    const answer = await stage.ask({ host: "slow.test" });
    assert.deepEqual([answer.status, answer.headers["x-berth-error"]], [504, "app_timeout"]);
  });

  test("a client that does not finish its head or its body is a 408", async () => {
    restart({ headTimeoutMs: 200, upstreamTimeoutMs: 200 });
    await stage.serve({ "calm.test": [await stage.app((req) => void req.on("error", () => {}).resume())] });
    const isTooSlow = /^HTTP\/1\.1 408 [\s\S]*x-berth-error: request_timeout/;
    assert.match(await stage.raw("GET / HTTP/1.1\r\nHost: calm.test\r\n"), isTooSlow);
    assert.match(await stage.raw("POST / HTTP/1.1\r\nHost: calm.test\r\nContent-Length: 9\r\n\r\nhalf"), isTooSlow);
  });

  test("a refused upgrade whose answer stops in its middle ends in time", async () => {
    restart({ upstreamTimeoutMs: 150 });
    const app = await stage.app((_req, res) => void res.writeHead(200, { "content-length": 100 }).write("half"));
    await stage.serve({ "half.test": [app] });
    const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    const answer = await stage.raw(`GET / HTTP/1.1\r\nHost: half.test\r\n${upgrade}`);
    assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*\r\n\r\nhalf$/);
  });

  test("the log says why an application was a 502, once", async () => {
    const dead = await stage.deadTarget();
    await stage.serve({ "why.test": [dead] });
    // A kept connection might belong to a process that was replaced earlier.
    const ask = () => stage.ask({ host: "why.test", agent: new Agent() });
    for (let i = 0; i < 3; i += 1) assert.equal((await ask()).status, 502);
    const lines = (await readFile(join(stateDir, "edge.log"), "utf8")).split("\n");
    const named = lines.filter((line) => line.includes("prj_why.test"));
    assert.equal(named.length, 1, named.join("\n"));
    assert.match(named[0] as string, new RegExp(`app_unreachable: ${dead.host}:${dead.port}: .*ECONNREFUSED`));
  });

  test("the log does not grow without bound, and goes on after a cut", async () => {
    const dead = await stage.deadTarget();
    await stage.serve({ "long.test": [dead] });
    const log = join(stateDir, "edge.log");
    await appendFile(log, "a line of many\n".repeat(300_000));
    await stage.until(async () => (await stat(log)).size < 1_000_000);
    assert.equal((await stage.ask({ host: "long.test" })).status, 502);
    await stage.until(async () => /^\d{4}-.*prj_long.test/m.test(await readFile(log, "utf8")));
  });

  test("one of an earlier version hands over its listening socket and its last counts", async () => {
    await (await stage.edge()).stop(0);
    const earlier = startEarlierEdge(stateDir);
    await once(earlier.stdout, "data");
    const { port } = record();
    restart();
    await stage.serve({ "earlier.test": [await stage.app(say("later"))] });
    assert.notEqual(record().identity.pid, earlier.pid);
    assert.equal(record().port, port);
    assert.equal((await stage.ask({ host: "earlier.test" })).body, "later");
    await stage.until(async () => (await requestsOf("prj_earlier")) === 7);
  });

  async function requestsOf(project: string): Promise<number> {
    const counted = (await (await stage.edge()).measure()).filter((each) => each.project_id === project);
    return counted.reduce((sum, each) => sum + each.requests, 0);
  }

  async function occupyPort() {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return { port: (server.address() as AddressInfo).port, close: () => server.close() };
  }

  /** Answers the first request of a connection and closes it at the second one without an answer. */
  async function silentCloser(): Promise<Target> {
    const server = createServer((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        socket.once("data", () => socket.destroy());
      });
      socket.on("error", () => {});
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    server.unref();
    return { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
  }
});

/** A process that applies one table and then waits until the test kills it. */
function startControlPlane(stateDir: string, table: RouteTable) {
  const adapter = JSON.stringify(pathToFileURL(join(import.meta.dirname, "builtin-edge.ts")));
  const log = JSON.stringify(pathToFileURL(join(import.meta.dirname, "../../kit/log.ts")));
  const code = `import { createBuiltinEdge } from ${adapter}; import { silentLog } from ${log};
    const edge = createBuiltinEdge({ listenHost: "127.0.0.1", listenPort: 0, stateDir: ${JSON.stringify(stateDir)}, uid: ${uid}, log: silentLog });
    await edge.apply(${JSON.stringify(table)}); console.log("applied"); setInterval(() => {}, 1000);`;
  return startNode(["--input-type=module", "-e", code]);
}

/** An edge process of an earlier version: it received the command for its successor and sent its counts itself. */
function startEarlierEdge(stateDir: string) {
  const from = (name: string) => JSON.stringify(pathToFileURL(join(import.meta.dirname, name)));
  const code = `import { createServer } from "node:net"; import { mkdirSync } from "node:fs";
    import { startDetached } from ${from("../../kit/exec.ts")}; import { identify } from ${from("../../kit/processes.ts")};
    import { callEdge } from ${from("call-edge.ts")}; import { listenControl } from ${from("listen-control.ts")};
    import { readRecord, writeRecord } from ${from("edge-record.ts")};
    import { controlSocket, edgeCommand, edgeEnv, edgePaths } from ${from("edge-settings.ts")};
    const stateDir = ${JSON.stringify(stateDir)};
    const counts = [{ counter: "earlier", project_id: "prj_earlier", requests: 7, by_class: { 2: 7 }, bytes_in: 0, bytes_out: 0, latency_buckets: [], latency_sum_ms: 0 }];
    const server = createServer().listen(0, "127.0.0.1", async () => {
      mkdirSync(edgePaths(stateDir).run, { recursive: true });
      await listenControl(controlSocket(stateDir, process.pid), {
        "GET /status": () => ({ version: 0, connections: 0, draining: false }),
        "POST /successor": async ({ node_bin, inherit }) => {
          const command = edgeCommand(node_bin, stateDir, [String(process.pid), ...(inherit ? ["inherit"] : [])]);
          const options = { env: edgeEnv(stateDir), fds: inherit ? [server._handle.fd] : [] };
          return { pid: await startDetached(command, edgePaths(stateDir).log, options) };
        },
        "POST /drain": () => void server.close(async () => {
          const { identity } = readRecord(stateDir);
          if (identity.pid !== process.pid) await callEdge(controlSocket(stateDir, identity.pid), "POST", "/usage", counts);
          process.exit(0);
        }),
      });
      const { port } = server.address();
      writeRecord(stateDir, { identity: identify(process.pid), fingerprint: "earlier", listen_host: "127.0.0.1", listen_port: 0, port, started_at: "" });
      console.log("ready");
    });`;
  return startNode(["--input-type=module", "-e", code]);
}
