import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { eventually, guardMs } from "../../../test/support/eventually.ts";
import { stopSignal } from "../../containers/containers.ts";
import { accountsOf } from "../../containers/image-trees.ts";
import { checkOf } from "../../containers/own-check.ts";
import { foldersIn } from "../../containers/server-folders.ts";
import { readProcessTree } from "../../kit/process-tree.ts";
import { readProcessFile } from "../../kit/processes.ts";
import { until } from "../../kit/until.ts";
import type { Instance, InstanceKey, Workload } from "../../ports/runtime.ts";
import { makeContainers, type TestContainers } from "../../../test/support/containers.ts";

// Drawn with other container files: what a runtime and a builder promise is shown by those of processes in every run.

const server = `
const fs = require("node:fs");
for (const name of ["SIGTERM", "SIGQUIT"]) process.on(name, () => { console.log("got " + name); process.exit(0); });
require("node:http").createServer((request, response) => {
  if (request.url === "/well") fs.writeFileSync("/tmp/well", "");
  if (request.url === "/hostname") return response.end(String(process.env.HOSTNAME));
  response.end(require("node:os").userInfo().username + " " + process.getuid() + " " + process.getgroups());
}).listen(Number(process.env.PORT));`;

describe("what an image says of itself", { skip: withoutDocker }, () => {
  const project = { project_id: "prj_settings", project_number: 931 };
  let fixture: TestContainers;
  let count = 0;
  before(async () => (fixture = await makeContainers()));
  after(() => fixture.close());

  async function workloadOf(config: Readonly<Record<string, unknown>>, storage?: string): Promise<Workload> {
    const image_ref = await fixture.makeConfigured(project.project_id, server, config, storage);
    const limits = { memoryBytes: 128 * 1024 * 1024, processes: 48, cpus: 1 };
    const id = `dep_settings${(count += 1)}`;
    return {
      ...{ id, ...project, process: "web", image_ref, port: 3000, env: {}, limits, reach: [], storage_access: "open" },
    };
  }
  async function start(config: Readonly<Record<string, unknown>>): Promise<Instance> {
    const instance = await fixture.runtime.start(await workloadOf(config), { ordinal: 0, attempt: 1 });
    assert.ok(await until(() => ask(instance).catch(() => undefined), { timeoutMs: guardMs }));
    return instance;
  }
  const ask = ({ address }: Instance, path = "/") =>
    fetch(`http://${address?.host}:${address?.port}${path}`).then((found) => found.text());
  const check = (key: InstanceKey) => fixture.runtime.checkHealth(key);

  it("HEALTHCHECK runs in the container, and what it says is in the outcome", async () => {
    const Test = ["CMD-SHELL", "test -e /tmp/well || { echo not  well; exit 3; }"];
    const instance = await start({ Healthcheck: { Test } });
    assert.deepEqual(await check(instance), { outcome: "failed", detail: "ended with exit code 3: not well" });
    await ask(instance, "/well");
    assert.deepEqual(await check(instance), { outcome: "healthy" });
    await fixture.runtime.stop(instance.workload_id, 1000);
    assert.equal((await check(instance)).outcome, "failed");
    const none = await start({});
    assert.deepEqual(await check(none), { outcome: "none" });
  });

  it("a HEALTHCHECK that prints without end is ended, and nothing reads on", async () => {
    const instance = await start({ Healthcheck: { Test: ["CMD", "yes", "healthy"], Timeout: 30e9 } });
    const outcome = await check(instance);
    assert.deepEqual(outcome, { outcome: "failed", detail: "printed more than 1 MiB" });
  });

  it("a HEALTHCHECK that takes longer than it says is ended with what it started", async () => {
    const words = ["CMD", "sh", "-c", "sleep 98765 & wait"];
    const instance = await start({ Healthcheck: { Test: words, Timeout: 300e6 } });
    assert.deepEqual(await check(instance), { outcome: "failed", detail: "did not end within 0.3 s" });
    const sleeps = () =>
      readProcessTree()
        .descendantsOf(1)
        .filter(({ name }) => name === "sleep");
    const own = () => sleeps().filter(({ pid }) => commandLine(pid).includes("98765"));
    await eventually(() => own().length === 0, "the check's processes end");
  });

  it("STOPSIGNAL is what ends the application", async () => {
    for (const [StopSignal, words] of [
      ["SIGQUIT", "got SIGQUIT"],
      ["", "got SIGTERM"],
    ] as const) {
      const instance = await start({ StopSignal });
      await fixture.runtime.stop(instance.workload_id, guardMs);
      assert.deepEqual((await fixture.runtime.readOutput(instance, null)).lines, [words]);
    }
  });

  it("the project's user has the name of USER and reads what that user's group may", async () => {
    const [name, uid, groups] = (await ask(await start({ User: "1234:5678" }))).split(" ");
    assert.deepEqual([name, uid], ["app", "20931"]);
    assert.ok(groups?.split(",").includes("5678"), groups);
    assert.match(await ask(await start({ User: "root" })), /^app 20931 (?:20931)?$/);
  });

  it("HOSTNAME is what the image says and nothing else, so that a server that listens there is reached by its own check", async () => {
    assert.equal(await ask(await start({}), "/hostname"), "undefined");
    assert.equal(await ask(await start({ Env: ["HOSTNAME=0.0.0.0"] }), "/hostname"), "0.0.0.0");
  });

  async function outputOf(workload: Workload, command: string): Promise<string> {
    let output = "";
    const onOutput = (chunk: Buffer) => void (output += chunk.toString());
    const limits = { timeoutMs: guardMs, silenceMs: guardMs, signal: new AbortController().signal };
    await fixture.runtime.runOnce(workload, { command, ...limits, onOutput });
    return output;
  }

  it("a VOLUME holds the image's own files, may be written to like the application's folder, and starts anew", async () => {
    const workload = await workloadOf({ WorkingDir: "/", Volumes: { "/app": {}, "/not/in/image": {} } });
    const words = "ls /app && echo x >/app/new && echo x >/not/in/image/new && stat -f -c %T /app /not/in/image";
    for (let twice = 0; twice < 2; twice += 1) {
      const [file, ...types] = (await outputOf(workload, words)).trim().split("\n");
      assert.equal(file, "server.js");
      assert.equal(new Set(types).size, 1, types.join());
      assert.doesNotMatch(types.join(), /tmpfs/);
    }
    const inApp = await workloadOf({ Volumes: { "/app/in": {}, "/data": {} } });
    assert.equal(await outputOf(inApp, "ls /app; echo x >/app/in/new; touch /data/x"), "in\nserver.js\n");
  });

  it("the persistent folder begins with the image's files at its place, keeps what changed, and no VOLUME hides it", async () => {
    const workload = await workloadOf({ WorkingDir: "/", Volumes: { "/app": {} } }, "/app");
    assert.equal(
      await outputOf(workload, 'ls /app; echo changed >/app/server.js; touch "$STORAGE_DIR/x"'),
      "server.js\n",
    );
    assert.equal(await outputOf(workload, "cat /app/server.js; rm /app/server.js"), "changed\n");
    assert.equal(await outputOf(workload, "ls /app"), "x\n");
    await fixture.runtime.removeStorage(project);
  });

  const left = () =>
    readFileSync("/proc/self/mounts", "utf8")
      .split("\n")
      .filter((line) => line.includes(` ${fixture.root}/`));

  it("a runtime that leaves the machine waits for starts under way, and takes everything back", async () => {
    const runtime = await fixture.reopen();
    const [one, other] = [await workloadOf({}), await workloadOf({})];
    const started = runtime.start(one, { ordinal: 0, attempt: 1 }).catch(() => {});
    await eventually(
      () => readdirSync(join(fixture.root, "runtime/layers")).some((name) => name.includes(one.id)),
      "it starts",
    );
    await runtime.dismantle();
    assert.deepEqual([left(), await runtime.observe()], [[], []]);
    await started;
    await assert.rejects(runtime.start(other, { ordinal: 0, attempt: 1 }), /being removed from this machine/);
  });
});

it("servers write to the folders of their logs, unless these lead to the output, and to caches that the build left empty", () => {
  const line = (mode: string, name: string) => `${mode} 0/0               0 2026-01-01 00:00 ${name}`;
  const logs = [
    ...[line("drwxr-xr-x", "log/"), line("-rw-r--r--", "log/dpkg.log"), line("drwxr-x---", "log/apache2/")],
    ...[line("-rw-r-----", "log/apache2/error.log"), line("drwxr-xr-x", "log/nginx/")],
    ...[line("lrwxrwxrwx", "log/nginx/access.log -> /dev/stdout"), line("drwxr-xr-x", "log/with space/")],
  ];
  assert.deepEqual(
    foldersIn("/var/log", logs, (kind) => kind === "l"),
    ["/var/log/apache2"],
  );
  const caches = [
    ...[line("drwxr-xr-x", "cache/"), line("drwxr-xr-x", "cache/nginx/"), line("drwxr-xr-x", "cache/nginx/deeper/")],
    ...[line("drwxr-xr-x", "cache/made/"), line("-rw-r--r--", "cache/made/table")],
  ];
  assert.deepEqual(
    foldersIn("/var/cache", caches, (kind) => kind !== "d"),
    ["/var/cache/nginx"],
  );
});

it("the names of signals are read as Docker reads them; what is none is SIGTERM", () => {
  const read = ["SIGQUIT", "quit", "3", "SIGRTMIN+3", "RTMAX-1", "", "SIGNONSENSE", "4711"].map((name) =>
    stopSignal(name),
  );
  assert.deepEqual(read, [3, 3, 3, 37, 63, 15, 15, 15]);
});

it("HEALTHCHECK is a line for the image's shell or a list of words; NONE is none", () => {
  const timeoutMs = 30_000;
  assert.deepEqual(checkOf({ Test: ["CMD-SHELL", "a b"] }), { words: ["/bin/sh", "-c", "a b"], timeoutMs });
  assert.deepEqual(checkOf({ Test: ["CMD-SHELL", "a"], Timeout: 1e9 }, ["/bin/bash", "-c"]), {
    ...{ words: ["/bin/bash", "-c", "a"], timeoutMs: 1000 },
  });
  assert.deepEqual(checkOf({ Test: ["CMD", "a", "b"] }), { words: ["a", "b"], timeoutMs });
  for (const none of [undefined, {}, { Test: ["NONE"] }, { Test: [] }]) assert.equal(checkOf(none), null);
});

it("the project's user takes the name and the group of the image's USER, and is `app` where that is root", () => {
  const passwd = "root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1001::/home/node:/bin/bash\n";
  const root = "root:x:0:0:root:/root:/bin/sh\n";
  const node = `${root}node:x:20001:20001::/home/app:/bin/bash\n`;
  for (const user of ["node", "1000", "node:staff"])
    assert.deepEqual(accountsOf(passwd, user, 20_001), { passwd: node, group: 1001 }, user);
  for (const user of ["", "root", "0:0"])
    assert.deepEqual(accountsOf(passwd, user, 20_001), {
      ...{ passwd: `${passwd}app:x:20001:20001::/home/app:/bin/sh\n`, group: null },
    });
  assert.equal(accountsOf("", "4000:0", 20_001).passwd, "app:x:20001:20001::/home/app:/bin/sh\n");
});

function commandLine(pid: number): string {
  return readProcessFile(pid, "cmdline");
}
