import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { runsAll } from "../../../test/support/draw-cases.ts";
import { guardMs } from "../../../test/support/eventually.ts";
import { testFolder } from "../../../test/support/test-folder.ts";
import type { DockerApi } from "../../kit/docker-api.ts";
import { until } from "../../kit/until.ts";
import { imageLabels } from "../../ports/image-labels.ts";
import { runtimeSuite } from "../../ports/runtime.suite.ts";
import type { Workload } from "../../ports/runtime.ts";
import { makeContainers, type TestContainers } from "../../../test/support/containers.ts";

// Drawn with other container files: what BERTH_DOCKER_RUNTIME changes is the program that starts an application's container.

// The default of BERTH_APP_PROCESSES. gVisor's own threads count towards the limit: it does not start an application with 64.
const limits = { memoryBytes: 256 * 1024 * 1024, processes: 256, cpus: 1 };
const project = { project_id: "prj_oci", project_number: 931 };

/** An OCI runtime as the engine's daemon.json contains it. */
interface OciRuntime {
  readonly name: "runsc" | "crun";
  readonly path: string;
  readonly runtimeArgs: readonly string[];
}

const server = `
process.on("SIGTERM", () => { console.log("got TERM"); setTimeout(() => process.exit(0), 200); });
require("node:http").createServer((q, r) => r.end(require("node:os").release())).listen(Number(process.env.PORT), process.env.HOST);
console.log("ready");
`;
// Waits like a package manager, by its file's name.
const manager = `require("node:child_process").spawn("sh", ["-c", "node server.js; echo server ended with $?"], { stdio: "inherit" }).on("exit", () => process.exit(0));`;
const webCommand = "node npm-cli.js; echo npm ended with $?";

const folder = testFolder("oci");

// gVisor needs the host's network stack: its own would take the replica's address from the network that Berth created.
describeRuntime({ name: "runsc", path: "/usr/bin/runsc", runtimeArgs: ["--network=host"] });
describeRuntime({ name: "crun", path: crunPath(), runtimeArgs: [] });

function describeRuntime({ name, ...registered }: OciRuntime): void {
  const missing = !existsSync(`/usr/bin/${name}`) && `SKIPPED: Debian's package ${name} is not installed`;
  const skip = withoutDocker || missing;
  const open = () => makeContainers({ runtimes: { [name]: registered } }, { ociRuntime: name });

  describe(`applications under ${name}`, { skip }, () => {
    let fixture: TestContainers;
    let workload: Workload;
    before(async () => {
      fixture = await open();
      const files = { "server.js": server, "npm-cli.js": manager };
      const image_ref = await fixture.makeImage(project.project_id, files, webCommand);
      workload = {
        ...{ id: `dep_${name}`, ...project, process: "web", image_ref, port: 3000, env: {}, limits, reach: [] },
        storage_access: "open",
      };
    });
    after(() => fixture.close());
    const start = async (attempt: number) => {
      const { address } = await fixture.runtime.start(workload, { ordinal: 0, attempt });
      const answer = () => fetch(`http://${address?.host}:${address?.port}`).then((found) => found.text());
      return until(() => answer().catch(() => undefined), { timeoutMs: guardMs });
    };

    it("run under it, and the containers of their networks under the engine's default", async () => {
      const kernel = await start(1);
      assert.equal(kernel === release(), name === "crun", kernel);
      const { api } = fixture.engine;
      const all = await api.call<{ Id: string; Names: string[] }[]>({ path: "/containers/json" });
      const runtimes = all.map(async ({ Id, Names: [own = ""] }) => {
        const found = await api.call<{ HostConfig: { Runtime: string } }>({ path: `/containers/${Id}/json` });
        return [own.endsWith("-net") ? "network" : "application", found.HostConfig.Runtime];
      });
      assert.deepEqual(Object.fromEntries(await Promise.all(runtimes)), { application: name, network: "runc" });
    });

    it("get SIGTERM behind a shell and a package manager, which wait for them", async () => {
      await start(2);
      await fixture.runtime.stop(workload.id, guardMs);
      const { lines } = await fixture.runtime.readOutput({ workload_id: workload.id, ordinal: 0, attempt: 2 }, null);
      assert.deepEqual(lines, ["ready", "got TERM", "server ended with 0", "npm ended with 0"]);
    });

    it("get SIGTERM from the init process in an image without a shell", async () => {
      const image_ref = await commitWithoutShell(fixture.engine.api, workload.image_ref);
      const own = { ...workload, id: `dep_${name}_own`, image_ref };
      await fixture.runtime.start(own, { ordinal: 0, attempt: 1 });
      const key = { workload_id: own.id, ordinal: 0, attempt: 1 };
      const said = async () => (await fixture.runtime.readOutput(key, null)).lines;
      assert.ok(await until(async () => (await said()).includes("ready") || undefined, { timeoutMs: guardMs }));
      await fixture.runtime.stop(own.id, guardMs);
      assert.deepEqual(await said(), ["ready", "got TERM"]);
    });

    it("end alone when they take too much memory, and the report says why", async () => {
      const command = "exec node -e 'const kept = []; for (;;) kept.push(Buffer.alloc(8 << 20, 1))'";
      const { signal } = new AbortController();
      const task = { command, timeoutMs: guardMs, silenceMs: guardMs, signal, onOutput: () => {} };
      const result = await fixture.runtime.runOnce(workload, task);
      assert.deepEqual(result, { outcome: "exited", code: 137, out_of_memory: true });
    });

    it("do not start under a runtime that the engine has lost, and the runtime's description says so", async () => {
      const runtime = await fixture.reopen({ ociRuntime: "lost" });
      const { missing } = await runtime.describe();
      const found = missing.find(({ part }) => part === "oci_runtime");
      assert.match(found?.effect ?? "", /no runtime lost \(BERTH_DOCKER_RUNTIME\)/);
      assert.match(found?.remedy ?? "", new RegExp(`one of .*\\b${name}\\b`));
      await assert.rejects(runtime.start(workload, { ordinal: 0, attempt: 9 }), /lost/);
      assert.ok(!(await (await fixture.reopen()).describe()).missing.some(({ part }) => part === "oci_runtime"));
    });
  });

  const skipSuite = skip || (!runsAll && `SKIPPED: the suite under ${name} takes minutes; npm test -- --all runs it`);
  describe(`the suite of runtimes under ${name}`, { skip: skipSuite }, () => {
    runtimeSuite(`the Docker runtime with ${name}`, async () => ({ ...(await open()), workload: { limits } }));
  });
}

/** Creates an image that has no /bin/sh and runs its own command. */
async function commitWithoutShell(api: DockerApi, image: string): Promise<string> {
  const { Id: container } = await api.call<{ Id: string }>({
    ...{ method: "POST", path: "/containers/create" },
    body: { Image: image, Entrypoint: ["/bin/busybox", "rm", "/bin/sh"], HostConfig: { NetworkMode: "none" } },
  });
  await api.call({ method: "POST", path: `/containers/${container}/start` });
  const { StatusCode: code } = await api.call<{ StatusCode: number }>({
    ...{ method: "POST", path: `/containers/${container}/wait` },
  });
  assert.equal(code, 0);
  const manifest = { format: 1, kind: "docker", uses_own_command: true, release_command: null, processes: {} };
  const labels = {
    [imageLabels.project]: project.project_id,
    [imageLabels.manifest]: JSON.stringify({ ...manifest, web_command: "node server.js" }),
  };
  const config = { WorkingDir: "/app", Env: ["PATH=/usr/local/bin:/bin"], Entrypoint: ["node", "server.js"] };
  const { Id: id } = await api.call<{ Id: string }>({
    ...{ method: "POST", path: "/commit", query: { container }, body: { ...config, Labels: labels } },
  });
  await api.call({ method: "DELETE", path: `/containers/${container}` });
  return id;
}

/**
 * Returns the program that starts crun. crun refuses a machine that mounts cgroup v1 and has controllers in v2 too ("cgroups in hybrid mode
 * not supported"). There it runs in a mount namespace without the mount of v2, and uses v1 only.
 */
function crunPath(): string {
  const unified = "/sys/fs/cgroup/unified";
  const controllers = join(unified, "cgroup.controllers");
  if (!existsSync(controllers) || readFileSync(controllers, "utf8").trim() === "") return "/usr/bin/crun";
  const path = join(folder, "crun");
  const inside = `umount ${unified} && exec /usr/bin/crun "$@"`;
  writeFileSync(path, `#!/bin/sh\nexec unshare --mount --propagation slave /bin/sh -c '${inside}' crun "$@"\n`, {
    mode: 0o755,
  });
  return path;
}
