// Drawn with other data files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, afterEach, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { runOk } from "../../kit/exec.ts";
import { unixSocketOf } from "../../kit/server-address.ts";
import { startNode } from "../../../test/support/node-process.ts";
import { identify, sendSignal } from "../../kit/processes.ts";
import { until } from "../../kit/until.ts";
import { loginOf, newDatabaseSpec } from "../../ports/postgres-host.suite.ts";
import type { DatabaseEndpoint, DatabaseSpec } from "../../ports/postgres-host.ts";
import { findProcesses } from "./find-processes.ts";
import { createLocalPostgresHost } from "./local-postgres-host.ts";
import { superuser } from "./settings.ts";
import { hasLostSocket } from "./start-server.ts";
import { login, makeTestPlace, missingPart } from "./test-fixture.ts";
import { eventually, guardMs } from "../../../test/support/eventually.ts";

describe("a local PostgreSQL instance", { skip: missingPart }, () => {
  const place = makeTestPlace(`${"long-".repeat(20)}/${"path-".repeat(20)}`);
  const host = createLocalPostgresHost(place.options);
  const spec = newDatabaseSpec();
  const folder = join(place.dir, spec.id);
  const processes = () =>
    findProcesses(readFileSync(join(folder, "process-mark"), "utf8"), statSync(join(folder, "data")).uid);

  afterEach(() => host.ensure(spec));
  after(async () => {
    for (const id of await host.list()) await host.destroy(id);
    place.remove();
  });

  it("is reached through a short socket although its folder has a long path that is closed to others", async () => {
    const endpoint = await host.ensure(spec);
    const socket = unixSocketOf(endpoint) ?? "";
    assert.ok(Buffer.byteLength(place.dir) > 107 && Buffer.byteLength(socket) <= 107);
    assert.equal(await answer(endpoint, spec, "socket"), 1);
    assert.equal(statSync(socket).mode & 0o777, 0o777);
    assert.equal(statSync(endpoint.host).mode & 0o777, 0o711);
    assert.equal(statSync(join(folder, "superuser-secret")).mode & 0o777, 0o600);
  });

  it("lets its superuser in over the socket alone", async () => {
    const endpoint = await host.ensure(spec);
    const as = {
      user: superuser,
      password: readFileSync(join(folder, "superuser-secret"), "utf8"),
      database: "postgres",
    };
    await (await login(endpoint, { ...as, way: "socket" })).end();
    await assert.rejects(login(endpoint, { ...as, way: "tcp" }), { code: "28000" });
  });

  it("listens on the loopback address alone, below the ports of outgoing connections", async () => {
    const { port } = await host.ensure(spec);
    const listening = readFileSync("/proc/net/tcp", "utf8") + readFileSync("/proc/net/tcp6", "utf8");
    const hex = port.toString(16).toUpperCase().padStart(4, "0");
    const addresses = [...listening.matchAll(new RegExp(`: ([0-9A-F]+):${hex} [0-9A-F]+:0000 0A`, "g"))].map(
      (match) => match[1],
    );
    assert.deepEqual(addresses, ["0100007F"]);
    assert.ok(port < 32_768);
  });

  it("leaves no secret in any command line, and its log is free of statements", async () => {
    const endpoint = await host.ensure(spec);
    const session = await login(endpoint, loginOf(spec));
    await session.query("do $$ begin raise log 'planted-in-the-log'; end $$");
    await assert.rejects(session.query("select 'planted-secret' from missing_table"));
    await session.end();
    const secret = readFileSync(join(folder, "superuser-secret"), "utf8");
    for (const line of commandLines()) assert.ok(!line.includes(spec.password) && !line.includes(secret));
    assert.doesNotMatch(readFileSync(join(folder, "postgresql.log"), "utf8"), /planted/);
  });

  it("has its log cut when it is seen running, because a server may run for years", async () => {
    await host.ensure(spec);
    const log = join(folder, "postgresql.log");
    appendFileSync(log, "x".repeat(5 * 1024 * 1024));
    assert.equal((await host.observe(spec)).state, "running");
    assert.ok(statSync(log).size < 1024 * 1024 && statSync(`${log}.1`).size > 1024 * 1024);
  });

  it("is no longer waited for when the signal aborts, and the next call takes it up", async () => {
    await host.ensure(spec);
    await host.stop(spec.id);
    await assert.rejects(host.ensure(spec, AbortSignal.abort(new Error("stopping"))), /stopping/);
    assert.equal(await answer(await host.ensure(spec), spec, "tcp"), 1);
  });

  it("is brought back by ensure after its postmaster was killed under a busy session, with what was committed", async () => {
    const endpoint = await host.ensure(spec);
    const session = await login(endpoint, loginOf(spec));
    await session.query("create table before_kill (a int); insert into before_kill values (1)");
    const busy = session.query("select pg_sleep(120)").catch(() => "ended");
    const { postmaster } = processes();
    assert.ok(postmaster && sendSignal(postmaster, "SIGKILL"));
    const healed = await host.ensure(spec);
    assert.deepEqual(healed, endpoint);
    assert.equal(await answer(healed, spec, "tcp", "select count(*)::int as n from before_kill"), 1);
    assert.equal(await busy, "ended");
    assert.notDeepEqual(processes().postmaster, postmaster);
  });

  it("survives the process that started it and is adopted by the next", async () => {
    await host.stop(spec.id);
    const endpoint = await ensureInAnotherProcess(place.options, spec);
    const { postmaster } = processes();
    assert.equal(await answer(endpoint, spec, "tcp"), 1);
    assert.deepEqual(await host.ensure(spec), endpoint);
    assert.deepEqual(processes().postmaster, postmaster);
  });

  it("is started once when two processes ensure it at the same time", async () => {
    await host.stop(spec.id);
    const endpoints = await Promise.all([1, 2, 3].map(() => ensureInAnotherProcess(place.options, spec)));
    assert.equal(new Set(endpoints.map((endpoint) => JSON.stringify(endpoint))).size, 1);
    const { postmaster } = processes();
    await host.ensure(spec);
    assert.deepEqual(processes().postmaster, postmaster);
  });

  it(
    "sees the system's programs and its own folders, and has no rights",
    { skip: place.options.bwrap === null },
    async () => {
      await host.ensure(spec);
      const { postmaster } = processes();
      const root = `/proc/${postmaster?.pid}/root`;
      const own = ["berth", "bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "usr"];
      assert.deepEqual(
        readdirSync(root).filter((name) => !own.includes(name)),
        [],
      );
      const berth = readdirSync(join(root, "berth")).filter((name) => name !== "postgres");
      assert.deepEqual(berth.toSorted(), ["config", "data", "sockets"]);
      const status = readFileSync(`/proc/${postmaster?.pid}/status`, "utf8");
      assert.match(status, /^CapEff:\t0+$/m);
      assert.match(status, /^CapBnd:\t0+$/m);
      assert.match(status, /^NoNewPrivs:\t1$/m);
    },
  );

  it("is adopted even when its starter died before it wrote down whom it had started", async () => {
    const endpoint = await host.ensure(spec);
    const { postmaster } = processes();
    rmSync(join(folder, "running.json"));
    assert.equal((await host.observe(spec)).state, "running");
    assert.deepEqual(await host.ensure(spec), endpoint);
    assert.deepEqual(processes().postmaster, postmaster);
  });

  it("starts although an earlier crash left a lock file that names a living stranger", async () => {
    await host.stop(spec.id);
    const data = join(folder, "data");
    const lockFile = join(data, "postmaster.pid");
    writeFileSync(lockFile, `${process.pid}\n${data}\n1\n1\n/berth/sockets\n127.0.0.1\n0 0\nready\n`, { mode: 0o600 });
    chownSync(lockFile, statSync(data).uid, statSync(data).gid);
    const starts = () => readFileSync(join(folder, "postgresql.log"), "utf8").split("starting PostgreSQL").length;
    const before = starts();
    assert.equal(await answer(await host.ensure(spec), spec, "tcp"), 1);
    assert.equal(starts(), before + 1, "by the first attempt");
  });

  it("comes back when its socket's folder was cleared away", async () => {
    const { host: sockets } = await host.ensure(spec);
    await host.stop(spec.id);
    rmSync(dirname(sockets), { recursive: true });
    assert.equal(await answer(await host.ensure(spec), spec, "socket"), 1);
  });

  it("comes back when its socket was removed under the running server", async () => {
    const endpoint = await host.ensure(spec);
    rmSync(unixSocketOf(endpoint) as string);
    assert.equal(await answer(await host.ensure(spec), spec, "socket"), 1);
  });

  it("is not stopped for a socket that it has not made yet, only for one that it has lost", async () => {
    const path = unixSocketOf(await host.ensure(spec)) as string;
    const data = join(place.dir, "starting");
    mkdirSync(data);
    const missing = join(data, "socket");
    assert.equal(hasLostSocket(data, missing), false, "nothing was started yet");
    writeFileSync(join(data, "postmaster.pid"), `1\n${data}\n1700000000\n5432\n`);
    assert.equal(hasLostSocket(data, missing), false, "it does not listen yet");
    assert.equal(hasLostSocket(join(folder, "data"), path), false);
    assert.equal(hasLostSocket(join(folder, "data"), missing), true);
    rmSync(data, { recursive: true });
  });

  it("whose socket appears during a look at it has not lost it", async () => {
    const data = mkdtempSync(join(tmpdir(), "berth-socket-"));
    const [lockFile, socket] = [join(data, "postmaster.pid"), join(data, "socket")];
    // The look waits at this pipe for the record, before which the server has created its socket.
    await runOk({ file: "mkfifo", args: [lockFile] });
    const url = JSON.stringify(pathToFileURL(join(import.meta.dirname, "start-server.ts")));
    const code = `const { hasLostSocket } = await import(${url}); console.log(hasLostSocket(...process.argv.slice(-2)));`;
    const look = runOk({ file: process.execPath, args: ["--input-type=module", "-e", code, data, socket] });
    const record = await open(lockFile, "w");
    writeFileSync(socket, "");
    await record.write(`1\n${data}\n1700000000\n5432\n${data}\n`);
    await record.close();
    assert.equal((await look).stdout, "false\n");
    rmSync(data, { recursive: true });
  });

  it("takes another port when somebody else has its own, and keeps that", async () => {
    const { port } = await host.ensure(spec);
    await host.stop(spec.id);
    const stranger = createServer().listen(port, "127.0.0.1");
    try {
      await new Promise((resolve) => stranger.once("listening", resolve));
      const moved = await host.ensure(spec);
      assert.notEqual(moved.port, port);
      assert.equal(await answer(moved, spec, "tcp"), 1);
      assert.deepEqual(await host.ensure(spec), moved);
    } finally {
      stranger.close();
    }
  });

  it("is made anew when the first attempt was interrupted", async () => {
    const other = { ...newDatabaseSpec(), project_number: 19 };
    const dir = join(place.dir, other.id);
    await host.ensure(other);
    await host.destroy(other.id);
    assert.ok(!existsSync(dir));
    const child = ensureInAnotherProcess(
      place.options,
      other,
      () => existsSync(dir) && readdirSync(dir).some((name) => name.startsWith("data.new")),
    );
    await assert.rejects(child);
    assert.equal(await answer(await host.ensure(other), other, "tcp"), 1);
    // Without a sandbox, the first attempt's program may write its folder after the second one has begun. The next start removes that
    // folder.
    const isTidy = async () => {
      if (!readdirSync(dir).some((name) => /data\.new|initial-password/.test(name))) return true;
      await host.stop(other.id);
      await host.ensure(other);
      return false;
    };
    await eventually(isTidy, "nothing of the first attempt is left");
    await host.destroy(other.id);
  });
});

async function answer(
  endpoint: DatabaseEndpoint,
  spec: DatabaseSpec,
  way: "tcp" | "socket",
  sql = "select 1 as n",
): Promise<unknown> {
  const session = await login(endpoint, loginOf(spec, way));
  try {
    return (await session.query(sql))[0]?.["n"];
  } finally {
    await session.end();
  }
}

/** Calls `ensure` in a separate process and kills that process; with `killWhen`, as soon as the condition holds. */
async function ensureInAnotherProcess(
  options: unknown,
  spec: DatabaseSpec,
  killWhen?: () => boolean,
): Promise<DatabaseEndpoint> {
  const module = new URL("./local-postgres-host.ts", import.meta.url).href;
  const script = `
    const [options, spec] = JSON.parse(await new Response(process.stdin).text());
    const { createLocalPostgresHost } = await import(${JSON.stringify(module)});
    console.log(JSON.stringify(await createLocalPostgresHost(options).ensure(spec)));
    setInterval(() => {}, 1000);`;
  const child = startNode(["--input-type=module", "--eval", script]);
  let printed = "";
  child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  child.stdin.end(JSON.stringify([options, spec]));
  const identity = identify(child.pid as number);
  await until(() => (printed.endsWith("\n") || killWhen?.() || child.exitCode !== null ? true : undefined), {
    timeoutMs: guardMs,
    atMostMs: 10,
  });
  if (identity) sendSignal(identity, "SIGKILL");
  return JSON.parse(printed) as DatabaseEndpoint;
}

function commandLines(): string[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8");
    } catch {
      return "";
    }
  });
}
