import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { getPriority } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import ssh2 from "ssh2";
import {
  clientEnv,
  commitFile,
  git,
  makeKey,
  makeWorkTree,
  refOf,
  ScriptedGate,
  startGitHost,
  tryGit,
  type Host,
} from "../../test/support/git-servers.ts";
import { run } from "../kit/exec.ts";
import { guardMs } from "../../test/support/eventually.ts";
import { processesNaming } from "../../test/e2e/processes.ts";

const gate = new ScriptedGate();
let host: Host;
let work: string;
let keyFile: string;
let fingerprint: string;

before(async () => {
  host = await startGitHost(gate);
  work = await makeWorkTree(host.root, "ssh");
  ({ keyFile, fingerprint } = await makeKey(host.root, "ed25519"));
});
beforeEach(() => {
  gate.register(fingerprint);
  gate.receive = async () => ({ accepted: true });
});
after(() => host.close());

const push = (url = host.sshUrl(), key = keyFile) =>
  tryGit(host.root, ["-C", work, "push", url, "main"], { keyFile: key });
/** Runs the plain ssh client, like a curious person. */
const ssh = (...args: string[]) => {
  const [file = "", ...options] = (clientEnv(host.root, keyFile)["GIT_SSH_COMMAND"] as string).split(" ");
  const at = ["-p", String(host.servers.port), "git@127.0.0.1"];
  return run({ file, args: [...options, ...at, ...args] }, { timeoutMs: guardMs, stdin: "" });
};

test("the host key's fingerprint is the one that a client shows when it meets the host", async () => {
  const { stderr } = await ssh("-v");
  assert.ok(stderr.includes(`Server host key: ssh-ed25519 ${host.servers.fingerprint}`), stderr);
});

test("an accepted push shows its lines while it is decided, and moves the branch", async () => {
  let show: (() => void) | undefined;
  const shown = new Promise<void>((done) => (show = done));
  gate.receive = async (_request, onLine) => {
    onLine("-----> Building");
    await shown;
    onLine("-----> Live");
    return { accepted: true };
  };
  const onStderr = (chunk: Buffer) => void (chunk.includes("-----> Building") && show?.());
  const pushed = await tryGit(host.root, ["-C", work, "push", host.sshUrl(), "main"], { keyFile, onStderr });
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.match(pushed.stderr, /remote: -----> Live/);
  assert.equal(await refOf(host), await git(host.root, ["-C", work, "rev-parse", "main"]));
});

test("what works on a push has a lower priority than the control plane, whose answers come first", async () => {
  await commitFile(host.root, work, "first.txt", "answers");
  const priorities = new Map<string, number>();
  gate.receive = async () => {
    for (const { pid, commandLine } of processesNaming(host.repositoryDir)) {
      try {
        priorities.set(commandLine, getPriority(pid));
      } catch {
        // The process has already ended.
      }
    }
    return { accepted: true };
  };
  assert.equal((await push()).exitCode, 0);
  const found = [...priorities].filter(([command]) => command.includes("receive-pack"));
  assert.ok(found.length > 0, [...priorities.keys()].join("\n"));
  for (const [command, priority] of priorities) assert.equal(priority, Math.min(getPriority() + 10, 19), command);
});

test("a refused push exits non-zero and leaves the branch", async () => {
  const before = await refOf(host);
  await commitFile(host.root, work, "refused.txt", "no");
  gate.receive = async () => ({ accepted: false });
  assert.notEqual((await push()).exitCode, 0);
  assert.equal(await refOf(host), before);
});

test("a receive-pack that is killed ends the client's wait at once, however late the decision comes", async () => {
  await commitFile(host.root, work, "killed.txt", String(Date.now()));
  const before = await refOf(host);
  const deciding = Promise.withResolvers<{ accepted: false }>();
  gate.receive = () => {
    for (const { pid, commandLine } of processesNaming(host.root))
      if (/^\S*git receive-pack/.test(commandLine)) process.kill(pid, "SIGKILL");
    return deciding.promise;
  };
  const pushed = await push();
  deciding.resolve({ accepted: false });
  assert.notEqual(pushed.exitCode, 0, pushed.stderr);
  assert.equal(await refOf(host), before);
});

test("ed25519, RSA and ECDSA keys push; an unknown key and another user name do not", async () => {
  for (const [type, bits] of [
    ["rsa", 3072],
    ["ecdsa", 256],
  ] as const) {
    const key = await makeKey(host.root, type, bits);
    assert.match((await push(undefined, key.keyFile)).stderr, /Permission denied \(publickey\)/);
    gate.register(key.fingerprint);
    const pushed = await push(undefined, key.keyFile);
    assert.equal(pushed.exitCode, 0, pushed.stderr);
  }
  assert.match((await push(host.sshUrl().replace("git@", "root@"))).stderr, /Permission denied/);
});

test("a clone works, with protocol version 2", async () => {
  await push();
  const env = { ...clientEnv(host.root, keyFile), GIT_TRACE_PACKET: "1" };
  const cloned = await tryGit(host.root, ["clone", "-q", host.sshUrl(), join(host.root, "clone-ssh")], { env });
  assert.equal(cloned.exitCode, 0, cloned.stderr);
  assert.match(cloned.stderr, /version 2/);
});

test("a foreign project answers byte for byte like a missing one", async () => {
  const answers = new Set<string>();
  const ask = async (path: string) => {
    for (const verb of ["git-receive-pack", "git-upload-pack"]) {
      const { exitCode, stdout, stderr } = await ssh(`${verb} '${path}'`);
      answers.add(JSON.stringify([exitCode, stdout, stderr]));
    }
  };
  await ask("/main/none.git");
  await ask("/nobody/demo.git");
  gate.register(fingerprint, "bob");
  await ask("/main/demo.git");
  await ask("/main/none.git");
  assert.deepEqual(
    [...answers],
    [JSON.stringify([128, "", "berth: There is no such repository, or you may not see it.\n"])],
  );
});

test("a key of two organizations reaches the projects of both", async () => {
  gate.register(fingerprint, "both");
  const pushed = await push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
});

test("an own project that cannot be used says why", async () => {
  assert.match((await push(host.sshUrl("main/deleted.git"))).stderr, /undelete it first/);
});

test("anything but the two commands is refused", async () => {
  const commands = [
    "ls",
    "git-upload-archive '/main/demo.git'",
    "git-upload-pack '~/demo.git'",
    "git-upload-pack /main/demo.git; id",
    "scp -t x",
  ];
  for (const command of commands) {
    const { exitCode, stdout, stderr } = await ssh(command);
    assert.deepEqual([exitCode, stdout], [128, ""], command);
    assert.match(stderr, /only git push and git fetch/);
  }
});

test("ssh without a command greets by name and gives no shell", async () => {
  const { exitCode, stdout } = await ssh("-T");
  assert.equal(exitCode, 0);
  assert.match(stdout, /^Hi ada! Your key works, for: main\./);
});

test("subsystems, terminals and forwarding are refused", async () => {
  assert.notEqual((await ssh("-s", "sftp")).exitCode, 0);
  assert.match((await ssh("-tt")).stderr, /PTY allocation request failed/);
  const [local, remote] = [
    await ssh("-W", "127.0.0.1:1"),
    await ssh("-o", "ExitOnForwardFailure=yes", "-N", "-R", "0:127.0.0.1:1"),
  ];
  assert.match(local.stderr, /forwarding failed|open failed|administratively|rejected/);
  assert.notEqual(remote.exitCode, 0);
});

test("a password never opens the door", async () => {
  const failed = await new Promise<string>((done) => {
    const client = new ssh2.Client();
    client.once("ready", () => done("ready")).once("error", (error) => done(error.message));
    client.connect({
      host: "127.0.0.1",
      port: host.servers.port,
      username: "git",
      password: "x",
      authHandler: ["none", "password"],
    });
  });
  assert.match(failed, /authentication methods failed/);
});

/** Connects with the key, as a program that keeps its connection. */
async function connected(): Promise<ssh2.Client> {
  const client = new ssh2.Client();
  const privateKey = await readFile(keyFile);
  await new Promise<void>((done, fail) => {
    client.once("ready", done).once("error", fail);
    client.connect({ host: "127.0.0.1", port: host.servers.port, username: "git", privateKey });
  });
  return client;
}

test("a session opened with a key that has since been removed may do nothing", async () => {
  const client = await connected();
  gate.keys.delete(fingerprint);
  const code = await new Promise<number>((done, fail) => {
    client.exec("git-upload-pack '/main/demo.git'", (error, channel) =>
      error ? fail(error) : channel.on("exit", done).resume(),
    );
  });
  client.end();
  assert.equal(code, 128);
});

test("one connection has ten channels at once", async () => {
  const client = await connected();
  const open = () =>
    new Promise<ssh2.ClientChannel>((done, fail) =>
      client.exec("git-upload-pack '/main/demo.git'", (error, channel) => (error ? fail(error) : done(channel))),
    );
  const [first] = await Promise.all(Array.from({ length: 10 }, open));
  await assert.rejects(open(), /open failure/);
  const isClosed = new Promise((done) => first?.once("close", done).resume());
  first?.end();
  await isClosed;
  await open();
  client.end();
});

test("who connects and says nothing, or never proves a key, is cut off", async () => {
  const strict = await startGitHost(gate, { handshakeMs: 200, unauthenticated: 2 });
  const visit = () =>
    new Promise<void>((done) => {
      const socket = connect(strict.servers.port, "127.0.0.1").on("error", () => {});
      socket.once("close", () => done()).resume();
    });
  await Promise.all(Array.from({ length: 5 }, visit));
  await strict.close();
});

test("who comes often from one address and never proves a key keeps nobody else out", async () => {
  const strict = await startGitHost(gate, { unauthenticatedPerAddress: 2 });
  const hello = (localAddress: string) =>
    new Promise<string>((done) => {
      const socket = connect({ port: strict.servers.port, host: "127.0.0.1", localAddress });
      socket.once("data", (data) => done(data.toString()));
      socket.once("close", () => done("closed")).on("error", () => {});
    });
  assert.match(await hello("127.0.0.2"), /^SSH-2\.0/);
  assert.match(await hello("127.0.0.2"), /^SSH-2\.0/);
  assert.equal(await hello("127.0.0.2"), "closed");
  assert.match(await hello("127.0.0.1"), /^SSH-2\.0/);
  await strict.close();
});

test("ten pushes at once, over both ways in, all arrive", async () => {
  const trees = await Promise.all(Array.from({ length: 10 }, (_, i) => makeWorkTree(host.root, `parallel-${i}`)));
  const pushes = trees.map((dir, i) => {
    const url = i % 2 === 0 ? host.sshUrl() : host.httpUrl();
    return tryGit(host.root, ["-C", dir, "push", url, `main:refs/heads/parallel-${i}`], { keyFile });
  });
  for (const pushed of await Promise.all(pushes)) assert.equal(pushed.exitCode, 0, pushed.stderr);
  for (let i = 0; i < 10; i += 1) assert.notEqual(await refOf(host, `refs/heads/parallel-${i}`), "");
});

test("close waits for a push that is being decided, and takes no new one", async () => {
  const own = await startGitHost(gate);
  const dir = await makeWorkTree(own.root, "closing");
  let closing: Promise<void> | undefined;
  gate.receive = async () => {
    closing = own.servers.close(20_000);
    const refused = await tryGit(own.root, ["ls-remote", own.httpUrl()]);
    assert.match(refused.stderr, /503|restarting/);
    return { accepted: true };
  };
  const pushed = await tryGit(own.root, ["-C", dir, "push", own.sshUrl(), "main"], { keyFile });
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  await closing;
  assert.notEqual(await refOf(own), "");
  await own.close();
});
