import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { request, type IncomingMessage, type RequestOptions } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, beforeEach, test } from "node:test";
import { deflateSync, gzipSync } from "node:zlib";
import {
  commitFile,
  git,
  makeWorkTree,
  refOf,
  ScriptedGate,
  startGitHost,
  tokens,
  tryGit,
  type Host,
} from "../../test/support/git-servers.ts";
import { until } from "../kit/until.ts";
import { eventually, guardMs } from "../../test/support/eventually.ts";

const gate = new ScriptedGate();
let host: Host;
let work: string;

before(async () => {
  host = await startGitHost(gate);
  work = await makeWorkTree(host.root, "http");
});
beforeEach(() => {
  gate.receive = async () => ({ accepted: true });
});
after(() => host.close());

const push = (url = host.httpUrl(), ...refs: string[]) =>
  tryGit(host.root, ["-C", work, "push", url, ...(refs.length ? refs : ["main"])]);
const basic = (token: string) => `Basic ${Buffer.from(`x:${token}`).toString("base64")}`;

async function call(
  path: string,
  options: RequestOptions = {},
  body?: Uint8Array,
): Promise<{ res: IncomingMessage; body: string }> {
  const res = await new Promise<IncomingMessage>((done, fail) => {
    request({ host: "127.0.0.1", port: host.httpPort, path, ...options }, done)
      .once("error", fail)
      .end(body);
  });
  return { res, body: await text(res) };
}

test("an accepted push moves the branch, is completed, and can be cloned", async () => {
  const id = await commitFile(host.root, work, "one.txt", "1");
  gate.receive = async (request, onLine) => {
    assert.deepEqual([request.refs[0]?.new, request.caller.name, request.project.id], [id, "ada", "prj_demo"]);
    assert.ok(request.quarantine?.GIT_QUARANTINE_PATH.startsWith(host.repositoryDir));
    onLine("-----> Live");
    return { accepted: true, head: "main" };
  };
  const pushed = await push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.match(pushed.stderr, /remote: -----> Live/);
  assert.equal(await refOf(host), id);
  assert.equal(gate.pushes.at(-1)?.refs[0]?.new, id);
  await git(host.root, ["clone", "-q", host.httpUrl(tokens.reader), join(host.root, "clone-http")]);
  assert.equal(await git(host.root, ["-C", join(host.root, "clone-http"), "rev-parse", "HEAD"]), id);
});

test("a refused push exits non-zero, shows why, and leaves the branch and no object", async () => {
  const before = await refOf(host);
  const id = await commitFile(host.root, work, "refused.txt", "no");
  gate.receive = async (_request, onLine) => {
    onLine(" !     Build failed");
    return { accepted: false };
  };
  const pushed = await push();
  assert.notEqual(pushed.exitCode, 0);
  assert.match(pushed.stderr, /remote: {2}! {5}Build failed[\s\S]*pre-receive hook declined/);
  assert.equal(await refOf(host), before);
  assert.notEqual((await tryGit(host.root, ["-C", host.repositoryDir, "cat-file", "-e", id])).exitCode, 0);
});

test("a gate that throws refuses the push", async () => {
  const before = await refOf(host);
  gate.receive = async () => Promise.reject(new Error("planted"));
  const pushed = await push();
  assert.notEqual(pushed.exitCode, 0);
  assert.match(pushed.stderr, /could not decide/);
  assert.doesNotMatch(pushed.stderr, /planted/);
  assert.equal(await refOf(host), before);
});

test("only branches and tags can be pushed, and the deploy branch cannot be deleted", async () => {
  await push();
  assert.match((await push(host.httpUrl(), "main:refs/notes/x")).stderr, /Only branches and tags/);
  assert.match((await push(host.httpUrl(), "main:refs/berth/builds/x")).stderr, /hidden ref/);
  assert.match((await push(host.httpUrl(), ":main")).stderr, /cannot be deleted/);
  assert.equal((await push(host.httpUrl(), "main:refs/tags/v1", "main:refs/heads/topic")).exitCode, 0);
  assert.equal((await push(host.httpUrl(), ":topic")).exitCode, 0);
  assert.equal(gate.pushes.at(-1)?.quarantine, null);
  assert.notEqual(await refOf(host), "");
});

test("a force push is accepted, one with an unknown push option is not", async () => {
  await git(host.root, ["-C", work, "commit", "-q", "--amend", "-m", "Rewritten"]);
  assert.notEqual((await push()).exitCode, 0);
  const force = (...options: string[]) =>
    tryGit(host.root, ["-C", work, "push", "-f", ...options, host.httpUrl(), "main"]);
  const refused = await force("-o", "note=a b");
  assert.notEqual(refused.exitCode, 0);
  assert.match(refused.stderr, /The only push option is `-o plan`/);
  const pushed = await force();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
});

test("hidden refs are not shown to clients", async () => {
  await git(host.root, ["-C", host.repositoryDir, "update-ref", "refs/berth/builds/bld_1", await refOf(host)]);
  assert.doesNotMatch(await git(host.root, ["ls-remote", host.httpUrl()]), /refs\/berth/);
});

test("without a valid token every path asks for one, whether it exists or not", async () => {
  const paths = [
    "/git/main/demo.git/info/refs?service=git-upload-pack",
    "/git/main/none.git/info/refs?service=git-upload-pack",
    "/git/",
  ];
  for (const path of paths) {
    for (const authorization of [undefined, "Bearer x", "Basic eA==", basic("wrong")]) {
      const { res, body } = await call(path, { headers: authorization === undefined ? {} : { authorization } });
      assert.deepEqual(
        [res.statusCode, res.headers["www-authenticate"]],
        [401, 'Basic realm="Berth", charset="UTF-8"'],
      );
      assert.match(body, /^Give an API token as the password\. .*`berth link <project>`/);
    }
  }
});

test("a foreign project answers byte for byte like a missing one", async () => {
  const answers = new Set<string>();
  const asked: [string, string][] = [
    ["main/demo", tokens.bob],
    ["main/none", tokens.bob],
    ["other/demo", tokens.ada],
    ["main/none", tokens.ada],
    ["nobody/none", tokens.ada],
  ];
  for (const [path, token] of asked) {
    for (const service of ["git-upload-pack", "git-receive-pack"]) {
      const { res, body } = await call(`/git/${path}.git/info/refs?service=${service}`, {
        headers: { authorization: basic(token) },
      });
      const { date: _date, ...headers } = res.headers;
      answers.add(JSON.stringify([res.statusCode, headers, body]));
    }
  }
  assert.equal(answers.size, 1, [...answers].join("\n"));
  assert.match([...answers][0] as string, /^\[404/);
});

test("an own project that cannot be used says why", async () => {
  const headers = { authorization: basic(tokens.reader) };
  const { res, body } = await call("/git/main/demo.git/info/refs?service=git-receive-pack", { headers });
  assert.deepEqual([res.statusCode, body], [403, "This token may not push.\n"]);
  assert.match((await push(host.httpUrl(tokens.ada, "main/deleted.git"))).stderr, /undelete it first/);
});

test("the dumb protocol and other paths of a repository are refused", async () => {
  const headers = { authorization: basic(tokens.ada) };
  for (const path of [
    "info/refs",
    "HEAD",
    "objects/info/packs",
    "config",
    "info/refs?service=git-upload-archive",
    "../x",
  ])
    assert.equal((await call(`/git/main/demo.git/${path}`, { headers })).res.statusCode, 403, path);
  assert.equal((await call("/git/main/demo.git/git-upload-pack", { headers, method: "PUT" })).res.statusCode, 403);
});

test("a gzip body is understood, another encoding or type is refused", async () => {
  const id = await refOf(host);
  const ask = Buffer.from(`0032want ${id}\n00000009done\n`);
  const headers = { authorization: basic(tokens.ada), "content-type": "application/x-git-upload-pack-request" };
  const path = "/git/main/demo.git/git-upload-pack";
  const zipped = await call(
    path,
    { method: "POST", headers: { ...headers, "content-encoding": "gzip" } },
    gzipSync(ask),
  );
  assert.deepEqual([zipped.res.statusCode, zipped.body.slice(0, 8)], [200, "0008NAK\n"]);
  const brotli = await call(path, { method: "POST", headers: { ...headers, "content-encoding": "br" } }, ask);
  assert.equal(brotli.res.statusCode, 415);
  const json = await call(path, { method: "POST", headers: { ...headers, "content-type": "application/json" } }, ask);
  assert.equal(json.res.statusCode, 415);
});

test("protocol version 2 is spoken", async () => {
  const env = { GIT_TRACE_PACKET: "1", PATH: "/usr/bin:/bin", HOME: host.root };
  const { stderr } = await tryGit(host.root, ["-c", "protocol.version=2", "ls-remote", host.httpUrl()], { env });
  assert.match(stderr, /version 2/);
});

test("a pack over the limit is refused", async () => {
  const small = await startGitHost(gate, { packBytes: 200_000 });
  try {
    const dir = await makeWorkTree(small.root, "big");
    await commitFile(small.root, dir, "big.bin", randomBytes(400_000));
    for (const url of [small.httpUrl()]) {
      const pushed = await tryGit(small.root, ["-C", dir, "push", url, "main"]);
      assert.notEqual(pushed.exitCode, 0);
      assert.match(pushed.stderr, /exceeds maximum allowed size/);
    }
    assert.equal(await refOf(small), "");
  } finally {
    await small.close();
  }
});

test("a push larger than one buffer, sent in chunks, arrives whole", async () => {
  const id = await commitFile(host.root, work, "large.bin", randomBytes(6_000_000));
  const pushed = await push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.equal(await refOf(host), id);
});

test("the token is in no argument and no environment of git's programs and hooks", async () => {
  await commitFile(host.root, work, "secret.txt", String(Date.now()));
  let seen: string[] = [];
  gate.receive = async () => {
    seen = await processesOfServer();
    return { accepted: true };
  };
  assert.equal((await push()).exitCode, 0);
  for (const program of ["http-backend", "receive-pack", "pre-receive"])
    assert.ok(
      seen.some((text) => text.includes(program)),
      program,
    );
  for (const text of seen) assert.doesNotMatch(text, /ada-secret|eDpiZXJ0aF/);
});

// If git 2.39's http-backend gets a length and its input ends early, as when the control plane is killed, it runs for ever.
test("git's programs are told no length of the body", async () => {
  await commitFile(host.root, work, "length.txt", String(Date.now()));
  let seen: string[] = [];
  gate.receive = async () => {
    seen = await processesOfServer();
    return { accepted: true };
  };
  assert.equal((await push()).exitCode, 0);
  assert.ok(seen.some((text) => text.includes("http-backend")));
  for (const text of seen) assert.doesNotMatch(text, /CONTENT_LENGTH=/);
});

test("a receive-pack that is killed ends the client's wait at once, however late the decision comes", async () => {
  await commitFile(host.root, work, "killed.txt", String(Date.now()));
  const before = await refOf(host);
  const deciding = new EventEmitter();
  const decided = once(deciding, "end");
  gate.receive = async (_request, onLine) => {
    onLine("-----> Building");
    return { accepted: (await decided).length > 0 };
  };
  // Only a client that has read lines waits for more of them: the process is killed once this line has arrived.
  let isKilled = false;
  const onStderr = async (chunk: Buffer) => {
    if (isKilled || !chunk.includes("Building")) return;
    isKilled = true;
    for (const { pid, text } of await listServerProcesses())
      if (/git\0receive-pack/.test(text)) process.kill(pid, "SIGKILL");
  };
  const args = ["-C", work, "push", host.httpUrl(), "main"];
  const pushed = await tryGit(host.root, args, { timeoutMs: guardMs, onStderr });
  deciding.emit("end");
  assert.deepEqual([pushed.exitCode === 0, pushed.timedOut], [false, false], pushed.stderr);
  assert.match(pushed.stderr, /git ended on the platform before it could report\. Look at what is live/);
  assert.equal(await refOf(host), before);
});

test("a signal to the control plane's process group does not end git", async () => {
  await commitFile(host.root, work, "group.txt", String(Date.now()));
  const groupOf = async (pid: number | "self") =>
    (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ").at(-1)?.split(" ")[2];
  let groups: unknown[] = [];
  gate.receive = async () => {
    groups = await Promise.all((await listServerProcesses()).map(({ pid }) => groupOf(pid)));
    return { accepted: true };
  };
  assert.equal((await push()).exitCode, 0);
  assert.ok(groups.length > 0);
  assert.ok(!groups.includes(await groupOf("self")));
});

/** Returns arguments and environments of all processes that run with the server's git configuration. */
async function processesOfServer(): Promise<string[]> {
  return (await listServerProcesses()).map(({ text }) => text);
}

async function listServerProcesses(): Promise<{ pid: number; text: string }[]> {
  const seen: { pid: number; text: string }[] = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const read = (file: string) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "");
    const environment = await read("environ");
    if (environment.includes(`${host.root}/git/gitconfig`))
      seen.push({ pid: Number(pid), text: `${await read("cmdline")}\n${environment}` });
  }
  return seen;
}

test("a revoked token ends a transfer that is under way", async () => {
  await commitFile(host.root, work, "endless.bin", randomBytes(4_000_000));
  assert.equal((await push()).exitCode, 0);
  const want = Buffer.from(`0032want ${await refOf(host)}\n00000009done\n`);
  const headers = { authorization: basic(tokens.reader), "content-type": "application/x-git-upload-pack-request" };
  const res = await new Promise<IncomingMessage>((done, fail) => {
    const options = {
      host: "127.0.0.1",
      port: host.httpPort,
      path: "/git/main/demo.git/git-upload-pack",
      method: "POST",
      headers,
    };
    request(options, done).once("error", fail).end(want);
  });
  // The client does not read, so back-pressure keeps git at work until the token is revoked.
  assert.equal(res.statusCode, 200);
  gate.revoked.add(tokens.reader);
  const stillRunning = async () => ((await processesOfServer()).length > 0 ? undefined : true);
  assert.equal(await until(stillRunning, { timeoutMs: guardMs }), true);
  gate.revoked.delete(tokens.reader);
  res.destroy();
});

test("a push that is being decided when its token is revoked is told to end, and the pusher reads why", async () => {
  await commitFile(host.root, work, "revoked.txt", "revoked");
  const before = await refOf(host);
  gate.receive = async ({ signal }) => {
    gate.revoked.add(tokens.ada);
    await once(signal, "abort");
    return { accepted: false };
  };
  const pushed = await push();
  gate.revoked.delete(tokens.ada);
  assert.notEqual(pushed.exitCode, 0);
  assert.match(pushed.stderr, /remote: {2}!     Your right to push here ended/);
  assert.equal(await refOf(host), before);
});

test("a pusher who leaves before the push is decided cancels it", async () => {
  const before = await refOf(host);
  await commitFile(host.root, work, "left.txt", "left");
  const leave = new AbortController();
  let isCancelled = false;
  gate.receive = async ({ signal }) => {
    leave.abort();
    await once(signal, "abort");
    isCancelled = true;
    return { accepted: false };
  };
  // Ctrl-C also reaches git's HTTP helper, which holds the connection.
  const interrupted = { signal: leave.signal, ownGroup: true };
  await tryGit(host.root, ["-C", work, "push", host.httpUrl(), "main"], interrupted);
  assert.equal(await until(() => isCancelled || undefined, { timeoutMs: guardMs }), true);
  assert.equal(await refOf(host), before);
});

test(
  "a pack whose delta grows beyond all memory is refused",
  { skip: !existsSync("/usr/bin/prlimit") && "prlimit is missing" },
  async () => {
    const small = await startGitHost(gate);
    const command = `${"0".repeat(40)} ${"1".repeat(40)} refs/heads/main\0report-status\n`;
    const length = (command.length + 4).toString(16).padStart(4, "0");
    const body = Buffer.concat([Buffer.from(`${length}${command}0000`), deltaBomb()]);
    const headers = { authorization: basic(tokens.ada), "content-type": "application/x-git-receive-pack-request" };
    const options = { port: small.httpPort, path: "/git/main/demo.git/git-receive-pack", method: "POST", headers };
    const answer = await call(options.path, options, body);
    assert.match(answer.body, /unpack index-pack abnormal exit/);
    assert.equal(await refOf(small), "");
    await small.close();
  },
);

/** A pack of a few kilobytes: one blob of 64 KiB, and a delta that copies it until the result has 6 GiB. */
function deltaBomb(): Buffer {
  const sourceBytes = 65_536;
  const copies = 98_304;
  // A copy instruction without offset and size copies 64 KiB from the start.
  const delta = Buffer.concat([varint(sourceBytes), varint(sourceBytes * copies), Buffer.alloc(copies, 0x80)]);
  const base = Buffer.concat([objectHeader(3, sourceBytes), deflateSync(Buffer.alloc(sourceBytes))]);
  assert.ok(base.length < 128, "the offset fits into one byte");
  const head = Buffer.concat([Buffer.from("PACK"), Buffer.from([0, 0, 0, 2, 0, 0, 0, 2])]);
  const pack = Buffer.concat([
    head,
    base,
    objectHeader(6, delta.length),
    Buffer.from([base.length]),
    deflateSync(delta),
  ]);
  return Buffer.concat([pack, createHash("sha1").update(pack).digest()]);
}

/** gitformat-pack(5): sizes of deltas are little-endian base 128. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push(0x80 | (rest % 128));
  return Buffer.from([...bytes, rest]);
}

/** Type in bits 4 to 6 of the first byte, the size's low four bits beside it, the rest base 128. */
function objectHeader(type: number, size: number): Buffer {
  const rest = Math.floor(size / 16);
  const first = (type << 4) | (size % 16);
  return rest === 0 ? Buffer.from([first]) : Buffer.concat([Buffer.from([0x80 | first]), varint(rest)]);
}

test("too many processes at once answer 503", async () => {
  const busy = await startGitHost(gate, { processes: 0 });
  try {
    const pushed = await tryGit(busy.root, ["ls-remote", busy.httpUrl()]);
    assert.match(pushed.stderr, /503|busy/);
  } finally {
    await busy.close();
  }
});

/** Sends the head of a push and the start of its body. */
function beginPush({ httpPort, httpUrl }: Host) {
  const headers = {
    authorization: basic(tokens.ada),
    "content-type": "application/x-git-receive-pack-request",
    "transfer-encoding": "chunked",
  };
  const path = `${new URL(httpUrl()).pathname}/git-receive-pack`;
  const sent = request({ host: "127.0.0.1", port: httpPort, method: "POST", path, headers, agent: false });
  sent.on("error", () => {});
  sent.write("00");
  return sent;
}

/** A gate that answers no call before `open` is called. */
function closedGate() {
  const closed = new ScriptedGate();
  const { promise, resolve } = Promise.withResolvers<void>();
  const found = closed.authenticateToken;
  let calls = 0;
  closed.authenticateToken = async (token) => {
    calls += 1;
    await promise;
    return found(token);
  };
  return { gate: closed, open: resolve, calls: () => calls };
}

test("an organization's limit of processes holds for calls that arrive together", async () => {
  const door = closedGate();
  const host = await startGitHost(door.gate, { processesPerOrganization: 2 });
  const pushes = Array.from({ length: 8 }, () => beginPush(host));
  const answers = Promise.all(pushes.map(async (each) => ((await once(each, "response")) as [IncomingMessage])[0]));
  try {
    await eventually(() => door.calls() === 8, "every call asked for its caller");
    door.open();
    const statuses = (await answers).map(({ statusCode }) => statusCode);
    assert.deepEqual(
      statuses.toSorted((a = 0, b = 0) => a - b),
      [200, 200, 503, 503, 503, 503, 503, 503],
    );
  } finally {
    for (const each of pushes) each.destroy();
    await host.close();
  }
});

test("a client that leaves before git starts keeps no process", async () => {
  const door = closedGate();
  const host = await startGitHost(door.gate, { processesPerOrganization: 1, idleMs: 2 * guardMs });
  try {
    const left = beginPush(host);
    await eventually(() => door.calls() === 1, "the call asked for its caller");
    const closed = new Promise((resolve) => left.once("close", resolve));
    left.destroy();
    await closed;
    door.open();
    const list = () => tryGit(host.root, ["ls-remote", host.httpUrl()]);
    await eventually(async () => (await list()).exitCode === 0, "the organization's one process is free again");
  } finally {
    await host.close();
  }
});
