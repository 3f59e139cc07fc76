// Drawn with other edge files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rename, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../../test/support/free-port.ts";
import { run, start } from "../../kit/exec.ts";
import { silentLog } from "../../kit/log.ts";
import { isAlive, runsReplacedFiles, sendSignal } from "../../kit/processes.ts";
import { makeCertificate, say, silenceSocket, Stage, startLoad, text } from "../../ports/edge-stage.suite.ts";
import type { HaproxyEdgeOptions } from "./haproxy-edge-options.ts";
import { createHaproxyEdge, type HaproxyEdge } from "./haproxy-edge.ts";
import { HaproxyProcess, readHaproxyRecord, type HaproxyRecord } from "./haproxy-process.ts";
import { adminSocket } from "./haproxy-settings.ts";
import { emptyPool } from "./route-pool.ts";
import { testOptions, withoutHaproxy } from "../../../test/support/haproxy.ts";

describe("HAProxy's process", { skip: withoutHaproxy }, () => {
  let stateDir = "";
  let edges: HaproxyEdge[] = [];
  let stage: Stage;

  before(async () => {
    stateDir = await mkdtemp(join(tmpdir(), "berth-haproxy-"));
    stage = new Stage(async () => make(), "https");
  });
  after(async () => {
    for (const edge of edges) edge.detach();
    await stage.close();
    await rm(stateDir, { recursive: true, force: true });
  });

  function make(options: Partial<HaproxyEdgeOptions> = {}): HaproxyEdge {
    const edge = createHaproxyEdge({ ...testOptions, stateDir, firstBackends: 3, ...options });
    edges.push(edge);
    return edge;
  }

  /** Replaces the control plane by a new one, possibly with other settings. */
  function restart(options: Partial<HaproxyEdgeOptions> = {}): void {
    for (const edge of edges) edge.detach();
    edges = [];
    stage.use(make(options));
  }

  const record = () => readHaproxyRecord(stateDir) as HaproxyRecord;
  const worker = async () =>
    (await readFile(`/proc/${record().identity.pid}/task/${record().identity.pid}/children`, "utf8"))
      .trim()
      .split(" ")
      .at(-1);

  test("a control plane that starts again adopts the running HAProxy with its routes and open connections", async () => {
    const app = await stage.app(say("alive"), true);
    const version = await stage.serve({ "adopt.test": [app] });
    const [{ identity }, pid] = [record(), await worker()];
    const socket = await stage.webSocket("adopt.test");
    restart();
    assert.equal((await (await stage.edge()).observe()).route_version, version);
    await stage.serve({ "adopt.test": [app], "more.test": [app] });
    assert.deepEqual([record().identity, await worker()], [identity, pid]);
    socket.send("still there");
    assert.equal(String((await once(socket, "message"))[0]), "still there");
    socket.close();
    assert.equal((await stage.ask({ host: "more.test" })).body, "alive");
  });

  for (const what of ["master", "worker"] as const) {
    test(`HAProxy comes back with routes and certificates when its ${what} is killed`, async () => {
      await stage.serve({ "crash.test": [await stage.app(say("back"))] });
      const { identity } = record();
      process.kill(what === "master" ? identity.pid : Number(await worker()), "SIGKILL");
      await stage.until(
        async () => record()?.identity.pid !== identity.pid && (await (await stage.edge()).observe()).running,
      );
      assert.equal((await stage.ask({ host: "crash.test", agent: stage.newAgent() })).body, "back");
    });
  }

  test("one look, a quarter of a second after its end, is enough to bring a HAProxy that ran steadily back", async (t) => {
    t.mock.timers.enable({ apis: ["setInterval"] });
    restart();
    const names = ["look-1.test", "look-2.test"];
    const app = await stage.app(say("back"));
    await stage.serve(Object.fromEntries(names.map((name) => [name, [app]])));
    const { identity } = record();
    sendSignal(identity, "SIGKILL");
    await stage.until(async () => !isAlive(identity));
    t.mock.timers.tick(250);
    await stage.until(async () => record().identity.pid !== identity.pid);
    await stage.until(async () => (await (await stage.edge()).observe()).running);
    for (const host of names) assert.equal((await stage.ask({ host, agent: stage.newAgent() })).body, "back");
    t.mock.timers.reset();
    restart();
  });

  test("HAProxy that crashed while no control plane ran starts with the saved routes and certificates", async () => {
    await stage.serve({ "saved.test": [await stage.app(say("saved"))] });
    for (const edge of edges) edge.detach();
    const { identity } = record();
    sendSignal(identity, "SIGKILL");
    await stage.until(async () => !isAlive(identity));
    restart();
    // This version is older than the saved table, so the call only starts HAProxy.
    await (await stage.edge()).apply({ version: 0, routes: [], challenge: null });
    assert.equal((await stage.ask({ host: "saved.test", agent: stage.newAgent() })).body, "saved");
  });

  const socketOf = async (name: string) =>
    join((await readFile(join(stateDir, "run-folder"), "utf8")).trim(), "haproxy", name);

  test("a start that waits for a processor has as long as it takes, and one that does not is given up", async () => {
    await stage.serve({ "slow.test": [await stage.app(say("slow"))] });
    const slow = join(stateDir, "slow-haproxy");
    await writeFile(slow, `#!/bin/sh\nsleep 1\nexec ${testOptions.haproxyBin} "$@"\n`, { mode: 0o755 });
    const dir = join(stateDir, "slow");
    const settings = {
      ...{ listen_host: "127.0.0.1", listen_port: await freePort(), listen_tls_port: null, max_body_bytes: 0 },
      ...{ run_dir: await socketOf("slow"), upstream_timeout_ms: 1000, drain_limit_ms: 1000 },
      ...{ busy_above_per_second: 100, probe_key: "key", trusted_proxies: [] },
    };
    await mkdir(dir);
    const startWith = (waitedMs: () => number) => {
      const programs = { haproxy: slow, setpriv: null, uid: null, readyWithinMs: 100, waitedMs };
      return new HaproxyProcess(settings, programs, dir, silentLog);
    };
    await assert.rejects(startWith(() => 0).start(emptyPool(1)), /could not start/);
    const starved = startWith(() => performance.now());
    const started = await starved.start(emptyPool(1));
    await starved.kill(started);
  });

  test("a worker that does not answer in time is not taken for one with nothing open", async () => {
    const gate = Promise.withResolvers<void>();
    const app = await stage.app(async (_req, res) => (res.write("a"), await gate.promise, res.end("b")));
    await stage.serve({ "late.test": [app] });
    const response = await stage.open_({ host: "late.test", agent: stage.newAgent() });
    for (const edge of edges) edge.detach();
    const end = await silenceSocket(await socketOf(adminSocket));
    await assert.rejects(stage.open(app), /does not answer in time/);
    end();
    assert.equal(await stage.open(app), 1);
    gate.resolve();
    assert.equal(await text(response), "ab");
    restart();
  });

  for (const what of ["master", "worker"] as const) {
    test(`HAProxy is continued when a signal has stopped its ${what}, and no request fails`, async () => {
      const app = await stage.app(say("awake"));
      await stage.serve({ "stopped.test": [app] });
      const [{ identity }, pid] = [record(), await worker()];
      process.kill(what === "master" ? identity.pid : Number(pid), "SIGSTOP");
      assert.equal((await stage.ask({ host: "stopped.test", agent: stage.newAgent() })).body, "awake");
      await stage.serve({ "stopped.test": [app], "more.test": [app] });
      assert.deepEqual([record().identity, await worker()], [identity, pid]);
      assert.equal((await stage.ask({ host: "more.test", agent: stage.newAgent() })).body, "awake");
    });
  }

  for (const isNew of [false, true]) {
    const when = isNew ? "by a control plane that finds it so" : "while no route changes";
    test(`HAProxy that hangs is ended and started again ${when}`, async () => {
      const app = await stage.app(say("awake"));
      await stage.serve({ "hang.test": [app] });
      const { identity } = record();
      if (isNew) for (const edge of edges) edge.detach();
      await silenceSocket(await socketOf(adminSocket));
      if (isNew) restart();
      if (isNew) await stage.serve({ "hang.test": [app] });
      await stage.until(
        async () => record()?.identity.pid !== identity.pid && (await (await stage.edge()).observe()).running,
      );
      assert.equal((await stage.ask({ host: "hang.test", agent: stage.newAgent() })).body, "awake");
    });
  }

  test("HAProxy that cannot be asked, because its socket is gone, does not hang: it serves on", async () => {
    const app = await stage.app(say("here"));
    await stage.serve({ "unasked.test": [app] });
    const [{ identity }, socket] = [record(), await socketOf(adminSocket)];
    await rename(socket, `${socket}.away`);
    await sleep(1500);
    assert.deepEqual(record().identity, identity);
    assert.equal((await stage.ask({ host: "unasked.test", agent: stage.newAgent() })).body, "here");
    await rename(`${socket}.away`, socket);
  });

  test("copies of routes and certificates that can't be written keep neither from HAProxy", async () => {
    const drafts = ["routes", "certificates"].map((name) => join(stateDir, `${name}.json.${process.pid}.new`));
    await Promise.all(drafts.map((draft) => mkdir(draft)));
    const certificate = await makeCertificate(["unsaved.test"]);
    await (await stage.edge()).applyCertificates({ version: Date.now(), certificates: [certificate] });
    await stage.serve({ "unsaved.test": [await stage.app(say("served"))] });
    assert.equal((await stage.ask({ host: "unsaved.test", agent: stage.newAgent() })).body, "served");
    await Promise.all(drafts.map((draft) => rmdir(draft)));
  });

  test("HAProxy whose record can't be written leaves the port to the next start", async () => {
    const app = await stage.app(say("served"));
    await stage.serve({ "unrecorded.test": [app] });
    for (const edge of edges) edge.detach();
    const { identity } = record();
    const draft = join(stateDir, `current.json.${process.pid}.new`);
    await mkdir(draft);
    sendSignal(identity, "SIGKILL");
    await stage.until(async () => !isAlive(identity));
    restart();
    await assert.rejects(stage.serve({ "unrecorded.test": [app] }), /current\.json/);
    await rmdir(draft);
    await stage.serve({ "unrecorded.test": [app] });
    assert.equal((await stage.ask({ host: "unrecorded.test", agent: stage.newAgent() })).body, "served");
  });

  test("a pool that grows costs no request, and a WebSocket goes on in the replaced worker", async () => {
    const [app, second] = [await stage.app(say("here"), true), await stage.app(say("here"))];
    await stage.serve({ "grow.test": [app] });
    const socket = await stage.webSocket("grow.test");
    const pid = await worker();
    const loads = [startLoad(stage, "grow.test"), startLoad(stage, "grow.test", { connections: 2, keepAlive: false })];
    await Promise.all(loads.map((load) => load.passed(20)));
    const others = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`other-${i}.test`, [app, second]]));
    await stage.serve({ "grow.test": [app], ...others });
    assert.notEqual(await worker(), pid);
    await Promise.all(loads.map((load) => load.passed(20)));
    for (const load of loads) assert.deepEqual((await load.stop()).failures, []);
    assert.ok((await stage.open(app)) >= 1);
    socket.send("through the old worker");
    assert.equal(String((await once(socket, "message"))[0]), "through the old worker");
    socket.close();
    assert.equal((await stage.ask({ host: "other-8.test" })).body, "here");
  });

  test("a replica that sends nothing for too long is answered with 504, and an open request of the worker before goes on", async () => {
    const gate = Promise.withResolvers<void>();
    const slow = await stage.app(async (_req, res) => (await gate.promise, res.end("late")));
    await stage.serve({ "slow.test": [slow] });
    const held = stage.ask({ host: "slow.test", agent: stage.newAgent() });
    await stage.until(async () => (await stage.open(slow)) === 1);
    restart({ upstreamTimeoutMs: 200 });
    await stage.serve({ "slow.test": [slow] });
    const { status, headers } = await stage.ask({ host: "slow.test", agent: stage.newAgent() });
    assert.deepEqual([status, headers["x-berth-error"]], [504, "app_timeout"]);
    gate.resolve();
    assert.equal((await held).body, "late");
  });

  test("a port in use is named with its setting", async () => {
    const squatter = createServer().listen(0, "127.0.0.1");
    await once(squatter, "listening");
    const { port } = squatter.address() as AddressInfo;
    const dir = join(stateDir, "squatted");
    const edge = createHaproxyEdge({ ...testOptions, stateDir: dir, listenPort: port, listenTlsPort: null });
    edges.push(edge);
    const named = new RegExp(`cannot listen on 127.0.0.1:${port}: .* or set BERTH_EDGE_PORT to a free port`);
    await assert.rejects(edge.apply({ version: 1, routes: [], challenge: null }), named);
    await edge.stop(0);
    squatter.close();
  });

  test("counts go on over a reload, under a new counter", async () => {
    const count = async () => {
      const usages = await (await stage.edge()).measure();
      return usages
        .filter(({ project_id }) => project_id === "prj_count.test")
        .reduce((sum, each) => sum + each.requests, 0);
    };
    const routes = { "count.test": [await stage.app(say("counted"))] };
    await stage.serve(routes);
    for (let i = 0; i < 3; i += 1) await stage.ask({ host: "count.test", agent: stage.newAgent() });
    restart({ upstreamTimeoutMs: 200_000 });
    await stage.serve(routes);
    await stage.ask({ host: "count.test", agent: stage.newAgent() });
    assert.equal(await count(), 4);
  });

  test("an update of its package takes effect by a reload, unless the new program does not work", async (t) => {
    const bin = await mkdtemp(join(tmpdir(), "berth-package-"));
    const haproxyBin = join(bin, "haproxy");
    await chmod(bin, 0o755);
    const unpack = async (from: string) => {
      await copyFile(from, `${haproxyBin}.dpkg-new`);
      await rename(`${haproxyBin}.dpkg-new`, haproxyBin);
    };
    await unpack(testOptions.haproxyBin);
    const make = () => createHaproxyEdge({ ...testOptions, stateDir: join(bin, "state"), haproxyBin });
    let edge = make();
    t.after(() => rm(bin, { recursive: true, force: true }));
    t.after(() => edge.stop(0));
    const look = async () => {
      await edge.apply({ version: 1, routes: [], challenge: null });
      const { identity } = readHaproxyRecord(join(bin, "state")) as HaproxyRecord;
      return { master: identity.pid, isReplaced: runsReplacedFiles(identity.pid) };
    };
    const { master, isReplaced } = await look();
    assert.equal(isReplaced, false);
    await unpack(testOptions.haproxyBin);
    assert.equal(runsReplacedFiles(master), true);
    assert.deepEqual(await look(), { master, isReplaced: false });
    await unpack("/bin/false");
    edge.detach();
    edge = make();
    assert.deepEqual(await look(), { master, isReplaced: true });
  });

  test(
    "keys are files that only HAProxy's user reads, and it is not root",
    { skip: process.getuid?.() !== 0 },
    async () => {
      await (await stage.edge()).applyCertificates({ version: 50, certificates: [await makeCertificate(["*.test"])] });
      const folder = (await readFile(join(stateDir, "run-folder"), "utf8")).trim();
      const { uid, mode } = await stat(join(folder, "haproxy", "certificates"));
      assert.deepEqual([uid, mode & 0o777], [29_301, 0o700]);
      for (const pid of [record().identity.pid, await worker()]) {
        const status = await readFile(`/proc/${pid}/status`, "utf8");
        assert.match(status, /^Uid:\s+29301\s+29301\s+29301\s+29301$/m);
        // Only CAP_NET_BIND_SERVICE.
        assert.match(status, /^CapBnd:\s+0000000000000400$/m);
        assert.match(status, /^Groups:\s*$/m);
        assert.match(status, /^NoNewPrivs:\s+1$/m);
      }
      const asApp = { uid: 29_302, gid: 29_302 };
      const signal = await run({ file: "kill", args: ["-TERM", `${await worker()}`] }, asApp);
      assert.match(signal.stderr, /not permitted/, "an application's user cannot signal it");
      assert.equal((await stat(stateDir)).mode & 0o077, 0, "nor can HAProxy's user open the data folder");
    },
  );

  test(
    "HAProxy listens on ports 80 and 443 as its own user, by CAP_NET_BIND_SERVICE alone",
    { skip: process.getuid?.() !== 0 },
    async () => {
      const network = start({ file: "unshare", args: ["--net", "--", "sh", "-c", holdNetwork] });
      const folder = await mkdtemp(join(tmpdir(), "berth-low-ports-"));
      const [up] = (await once(network.stdout as Readable, "data")) as [Buffer];
      assert.equal(String(up), "1024\n", "ports below are for those who may");
      const setpriv = join(folder, "setpriv");
      const enter = `#!/bin/sh\nexec nsenter --net=/proc/${network.pid}/ns/net setpriv "$@"\n`;
      await writeFile(setpriv, enter, { mode: 0o700 });
      const low = { stateDir: join(folder, "state"), listenPort: 80, listenTlsPort: 443, setpriv };
      const edge = createHaproxyEdge({ ...testOptions, ...low });
      try {
        await edge.apply({ version: 1, routes: [], challenge: null });
        const listening = await readFile(`/proc/${network.pid}/net/tcp`, "utf8");
        const found = Array.from(listening.matchAll(/0100007F:(\w{4}) 0{8}:0{4} 0A(?: +\S+){3} +(\d+)/g));
        assert.deepEqual(
          new Set(found.map(([, port, uid]) => `${port} ${uid}`)),
          new Set(["0050 29301", "01BB 29301"]),
        );
        const { identity } = readHaproxyRecord(low.stateDir) as HaproxyRecord;
        const status = await readFile(`/proc/${identity.pid}/status`, "utf8");
        assert.match(status, /^CapEff:\s+0000000000000400$/m);
      } finally {
        await edge.stop(0);
        network.kill("SIGKILL");
        await rm(folder, { recursive: true, force: true });
      }
    },
  );
});

const holdNetwork = "ip link set lo up && cat /proc/sys/net/ipv4/ip_unprivileged_port_start && exec sleep 600";
