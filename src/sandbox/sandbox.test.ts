import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { runOk } from "../kit/exec.ts";
import { createSandbox } from "./sandbox.ts";
import type { Sandbox, SandboxSpec } from "./spec.ts";
import { testParts } from "../../test/support/sandbox-parts.ts";
import { eventually, guardMs } from "../../test/support/eventually.ts";

const parts = testParts();
const uid = 29_001;
const mib = 1024 * 1024;
const secret = "correct-horse-battery-staple";

describe("a sandbox", { skip: parts.bwrap ? false : "bubblewrap is not installed" }, () => {
  const root = mkdtempSync(join(tmpdir(), "berth-sandbox-"));
  // Has the mode of /root: only its owner may enter, so a project's user could not reach its own release without help.
  const data = join(root, "private");
  let sandbox: Sandbox;
  let count = 0;
  const run = (script: string, more: Partial<SandboxSpec> = {}) => {
    const spec: SandboxSpec = {
      ...{ id: `build-test${(count += 1)}`, uid, argv: ["/bin/sh", "-c", script], env: {}, binds: [] },
      app: { source: join(data, "app"), access: "read" },
      storageDir: join(data, "storage"),
      network: { kind: "none" },
      limits: { memoryBytes: 128 * 1024 * 1024, processes: 32, cpus: 1 },
      ...more,
    };
    return sandbox.run(spec, { timeoutMs: guardMs });
  };
  /** Runs a script that waits until `look` has inspected it. */
  const runWhile = async <T>(script: string, look: () => T, more: Partial<SandboxSpec> = {}) => {
    const file = (name: string) => join(data, "storage", name);
    const wait = 'touch "$STORAGE_DIR/begun"; until [ -e "$STORAGE_DIR/seen" ]; do sleep 0.1; done';
    const running = run(`${script}; ${wait}`, more);
    await eventually(() => existsSync(file("begun")), "the script runs");
    const seen = look();
    writeFileSync(file("seen"), "");
    const result = await running;
    for (const name of ["begun", "seen"]) rmSync(file(name));
    return { seen, result };
  };
  const needs = (part: string, t: { skip(reason: string): void }) => {
    const misses = !sandbox.describe().isolation.includes(part);
    if (misses) t.skip(`this machine lacks ${part}`);
    return misses;
  };
  before(async () => {
    for (const folder of ["app", "storage"]) mkdirSync(join(data, folder), { recursive: true });
    mkdirSync(join(data, "app", "lib"));
    writeFileSync(join(data, "app", "file"), "released");
    writeFileSync(join(data, "app", "lib", "old"), "");
    writeFileSync(join(data, "control-plane-key"), "the key", { mode: 0o644 });
    chmodSync(data, 0o700);
    sandbox = await createSandbox({ parts, stateDir: join(data, "sandbox"), nodeBin: process.execPath });
    if (process.geteuid?.() === 0)
      for (const path of ["storage", "app", "app/file", "app/lib", "app/lib/old"])
        chownSync(join(data, path), sandbox.hostUid(uid), sandbox.hostUid(uid));
  });
  after(async () => {
    await sandbox.dismantle();
    rmSync(root, { recursive: true, force: true });
  });

  it("reads its release below a folder that only root may enter, and cannot change it", async () => {
    assert.equal((await run("cat /app/file")).stdout, "released");
    assert.match((await run("echo x > /app/file")).stderr, /Read-only file system/);
    assert.notEqual((await run("touch /new")).exitCode, 0);
  });

  it("runs a build with a lower priority than the control plane, whose answers come first", async () => {
    assert.equal((await run("nice")).stdout, `${Math.min(getPriority() + 10, 19)}\n`);
  });

  it("changes its private folder, and neither the release nor another sandbox sees it", async (t) => {
    if (needs("private_app_folder", t)) return;
    const app = { source: join(data, "app"), access: "private" } as const;
    const change = "echo mine > file; rm -r lib; mkdir lib && echo new > lib/new; echo x > new && cat file lib/new new";
    assert.deepEqual(await run(change, { app }).then(({ stdout, stderr }) => [stdout, stderr]), ["mine\nnew\nx\n", ""]);
    assert.equal((await run("cat file; ls . lib", { app })).stdout, "released.:\nfile\nlib\n\nlib:\nold\n");
    const released = new Set(readdirSync(join(data, "app"), { recursive: true, encoding: "utf8" }));
    assert.deepEqual(released, new Set(["file", "lib", "lib/old"]));
  });

  it("may write so much to its private folder and no more, whatever its memory", async (t) => {
    if (needs("private_app_folder", t)) return;
    const small = await createSandbox({
      parts,
      stateDir: join(data, "small"),
      nodeBin: process.execPath,
      layerBytes: 48 * mib,
    });
    try {
      const spec = { id: "build-full", uid, env: {}, binds: [], storageDir: null, network: { kind: "none" } } as const;
      const argv = [
        "/bin/sh",
        "-c",
        "dd if=/dev/zero of=big bs=1M count=64; stat -c %s big; rm big; echo room > small",
      ];
      const app = { source: join(data, "app"), access: "private" } as const;
      const result = await small.run({ ...spec, argv, app, limits: { memoryBytes: 64 * mib, processes: 32, cpus: 1 } });
      assert.match(result.stderr, /No space left on device/);
      assert.ok(Number(result.stdout) <= 48 * mib && Number(result.stdout) >= 24 * mib, result.stdout);
      assert.equal(result.exitCode, 0);
    } finally {
      await small.dismantle();
    }
  });

  it("keeps no disk of this machine busy that it does not use", async (t) => {
    if (needs("namespaces", t) || process.geteuid?.() !== 0) return;
    const disk = join(root, "disk");
    mkdirSync(disk);
    await runOk({ file: "mount", args: ["-t", "tmpfs", "disk", disk] });
    const isOurs = (line: string) => line.startsWith(`${parts.bwrap}\0`) && line.includes(`build-test${count}\0`);
    const { seen } = await runWhile("true", () => {
      const ours = readdirSync("/proc").filter((pid) => isOurs(readQuietly(`/proc/${pid}/cmdline`)));
      return { ours, holders: ours.filter((pid) => readQuietly(`/proc/${pid}/mountinfo`).includes(disk)) };
    });
    await runOk({ file: "umount", args: [disk] });
    assert.ok(seen.ours.length > 1, seen.ours.join());
    assert.deepEqual(seen.holders, []);
  });

  it("writes its storage, its home and /tmp, each its own", async () => {
    assert.equal(
      (await run('echo kept > "$STORAGE_DIR/x" && echo y > ~/y && echo z > /tmp/z && ls /tmp ~')).stdout,
      "/home/app:\ny\n\n/tmp:\nz\n",
    );
    assert.equal((await run("cat /storage/x; ls /tmp ~")).stdout, "kept\n/home/app:\n\n/tmp:\n");
  });

  it("sees nothing of this machine's homes, secrets, processes or data folder", async () => {
    const looked = await run(
      `ls /root /home /etc/shadow /etc/ssl/private ${root} ${data} /sys/class 2>&1; ps -e -o comm= | sort -u | tr '\\n' ' '`,
    );
    assert.ok(!looked.stdout.includes("control-plane-key") && !looked.stdout.includes(".ssh"), looked.stdout);
    assert.match(looked.stdout, /cannot access '\/root'/);
    assert.match(looked.stdout, /cannot access '\/etc\/shadow'/);
    assert.doesNotMatch(looked.stdout, /node/);
  });

  it("is the project's user, without capabilities and without a way to more", async (t) => {
    if (needs("namespaces", t)) return;
    const status = await run("id -u; grep -E 'Cap(Eff|Prm|Bnd)|NoNewPrivs|Seccomp:' /proc/self/status");
    assert.match(status.stdout, /CapPrm:\s+0+\nCapEff:\s+0+\nCapBnd:\s+0+\nNoNewPrivs:\s+1\nSeccomp:\s+2/);
    if (sandbox.hostUid(uid) === uid) assert.match(status.stdout, new RegExp(`^${uid}\n`));
    for (const attempt of [
      "unshare -Ur true",
      "unshare -m true",
      "mount -t tmpfs x /tmp",
      "umount /proc",
      "chroot /app true",
      "nsenter -t 1 -m true",
    ]) {
      assert.notEqual((await run(attempt)).exitCode, 0, attempt);
    }
  });

  it("has exactly the environment it is given, byte for byte, and shows it to nobody", async () => {
    const odd = `a'b"c $(id) \\ \n ü`;
    const commandLines = () => readdirSync("/proc").map((pid) => readQuietly(`/proc/${pid}/cmdline`));
    const { seen, result } = await runWhile('printf "%s" "$ODD"', commandLines, { env: { ODD: odd, TOKEN: secret } });
    assert.ok(
      seen.some((line) => line.includes("STORAGE_DIR/seen")),
      "the script was running",
    );
    assert.ok(!seen.some((line) => line.includes(secret)), "the secret is in nobody's command line");
    assert.equal(result.stdout, odd);
  });

  it("cannot smuggle a library into the programs that make it", async () => {
    const result = await run("echo fine", { env: { LD_PRELOAD: "/storage/evil.so" } });
    assert.equal(result.stderr.match(/evil\.so/g)?.length ?? 0, 1, "only the application's own shell is told of it");
  });

  it("contains a fork bomb", async (t) => {
    if (needs("process_limit", t)) return;
    const result = await run("i=0; while [ $i -lt 200 ]; do sleep 5 & i=$((i+1)); done 2>/dev/null; echo never");
    assert.ok(!result.stdout.includes("never") || result.exitCode !== 0);
    assert.equal((await run("echo alive")).stdout, "alive\n");
  });

  it("says so when it runs out of memory", async (t) => {
    if (needs("memory_limit", t)) return;
    const result = await run("node -e 'const all = []; for (;;) all.push(Buffer.alloc(8e6, 1))'");
    assert.deepEqual([result.outOfMemory, result.exitCode], [true, 137]);
    assert.equal((await run("true")).outOfMemory, false);
  });

  it("tells Node its memory limit", async (t) => {
    if (needs("memory_limit", t)) return;
    assert.equal((await run("node -p 'process.constrainedMemory()'")).stdout.trim(), String(128 * 1024 * 1024));
  });

  it("has no descriptor but the first three, whatever the program that started Berth had open", async () => {
    const url = (file: string) => JSON.stringify(pathToFileURL(join(import.meta.dirname, file)));
    const code = `import { closeInheritedDescriptors } from ${url("../kit/inherited-descriptors.ts")};
      closeInheritedDescriptors();
      const { createSandbox } = await import(${url("sandbox.ts")});
      const sandbox = await createSandbox(${JSON.stringify({ parts, stateDir: join(data, "inherited"), nodeBin: process.execPath, network: "shared" })});
      const folders = { app: null, storageDir: null, binds: [] };
      const argv = ["/bin/sh", "-c", "for fd in /proc/self/fd/*; do echo \${fd##*/}; done"];
      const spec = { id: "build-fds", uid: ${uid}, argv, env: {}, ...folders, network: { kind: "none" }, limits: null };
      process.stdout.write((await sandbox.run(spec)).stdout);
      await sandbox.dismantle();`;
    const node = [process.execPath, "--input-type=module", "-e", code];
    const started = await runOk({ file: "bash", args: ["-c", 'exec 9</ 200</; exec "$0" "$@"', ...node] });
    // The shell needs one more descriptor to read the folder.
    assert.deepEqual(started.stdout.trim().split("\n").slice(0, -1), ["0", "1", "2"]);
  });

  it("has no network at all when it asks for none", async () => {
    const result = await run(
      `node -e 'require("net").connect(1, "192.0.2.1").on("error", (e) => console.log(e.code))'`,
    );
    assert.equal(result.stdout.trim(), "ENETUNREACH");
  });

  it("reaches neither the host's loopback nor its other addresses", async (t) => {
    if (needs("network_namespace", t)) return;
    const server = await listen(
      createServer((socket) => socket.end("reached")),
      { port: 0, host: "0.0.0.0" },
    );
    t.after(() => server.close());
    const { port } = server.address() as { port: number };
    const script = `for (const host of ["127.0.0.1", process.argv[1]]) require("net").connect({ port: ${port}, host, timeout: 3000 })
      .on("connect", () => console.log("REACHED")).on("timeout", function () { this.destroy(); }).on("error", () => {})`;
    const result = await run(`node -e '${script}' $(ip route | awk '/default/ { print $3 }')`, {
      network: { kind: "egress" },
    });
    assert.equal(result.stdout, "");
  });

  it("reaches a named unix socket of the host at a port of its own loopback", async (t) => {
    const socketPath = join(data, "echo.sock");
    const server = await listen(
      createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket)),
      { path: socketPath },
    );
    const tcp = await listen(
      createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket)),
      { port: 0, host: "127.0.0.1" },
    );
    t.after(() => [server, tcp].forEach((each) => each.close()));
    const { port } = tcp.address() as { port: number };
    const script = `require("net").connect(${port}, "127.0.0.1").end("hello").on("data", (data) => console.log(String(data)))`;
    const reach = [{ port, socket_path: socketPath }];
    assert.equal((await run(`node -e '${script}'`, { network: { kind: "egress", reach } })).stdout, "hello\n");
  });

  it("ends at once when it takes too long, with everything in it", async () => {
    const mark = `sleep 9${process.pid}`;
    const result = await sandbox.run(
      {
        id: "build-late",
        uid,
        argv: ["/bin/sh", "-c", `${mark} & ${mark}`],
        env: {},
        app: null,
        storageDir: null,
        binds: [],
        network: { kind: "none" },
        limits: null,
      },
      { timeoutMs: 500 },
    );
    assert.equal(result.timedOut, true);
    const left = readdirSync("/proc").filter(
      (pid) => /^\d+$/.test(pid) && readQuietly(`/proc/${pid}/cmdline`).startsWith(mark.replace(" ", "\0")),
    );
    assert.deepEqual(left, []);
  });

  it("frees what a crash left of a family, and only that", async () => {
    const spec = {
      uid,
      argv: ["/bin/true"],
      env: {},
      app: null,
      storageDir: null,
      binds: [],
      network: { kind: "serve", port: 3000, reach: [] },
      limits: null,
    } as const;
    const [lost, kept] = [
      await sandbox.command({ ...spec, id: "build-lost" }),
      await sandbox.command({ ...spec, id: "run-kept" }),
    ];
    for (const command of [lost, kept]) command.close();
    await sandbox.sweep("build", []);
    const again = await sandbox.command({ ...spec, id: "run-kept" });
    again.close();
    assert.deepEqual(again.address, kept.address, "the other family's lease is as it was");
    await sandbox.sweep("run", []);
  });
});

function listen(server: Server, where: { port: number; host: string } | { path: string }): Promise<Server> {
  return new Promise((resolve) => server.listen(where, () => resolve(server)));
}

function readQuietly(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
