import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { runsAll } from "../../../test/support/draw-cases.ts";
import { guardMs } from "../../../test/support/eventually.ts";
import { startTestRegistry, withoutRegistry, type TestRegistry } from "../../../test/support/registry.ts";
import { makeSwarm, type TestSwarm } from "../../../test/support/swarm.ts";
import { until } from "../../kit/until.ts";
import type { Instance, Workload } from "../../ports/runtime.ts";
import { createGivenRegistry } from "./given-registry.ts";
import { registeredImage } from "./image-registry.ts";

const skip =
  withoutDocker || withoutRegistry || (!runsAll && "SKIPPED: a Docker Swarm takes minutes; npm test -- --all runs it");
const project_id = "prj_given";
const server = `require("node:http").createServer((request, response) => response.end("here")).listen(process.env.PORT)`;

/** Debian's registry as an operator would run it: on another machine, with TLS and a login, and trusted by the swarm's machines. */
it("sends a login of any length in the form that the engine reads", () => {
  for (const password of ["s", "se", "sec", "ü?>~", "ü?>~~"]) {
    const { authHeader } = createGivenRegistry("registry.test:5000/team", `user:${password}`);
    assert.match(authHeader, /^[\w-]+={0,2}$/);
    assert.equal(authHeader.length % 4, 0, "padded");
    const account = { username: "user", password, serveraddress: "registry.test:5000" };
    assert.deepEqual(JSON.parse(Buffer.from(authHeader, "base64url").toString()), account);
  }
});

describe("a Docker swarm with a registry that the operator runs", { skip }, () => {
  let registry: TestRegistry;
  let swarm: TestSwarm;
  let image_ref: string;
  const trusted = () => `/etc/docker/certs.d/${registry.host}`;
  const repository = () => `${registry.host}/team/images`;
  const login = () => `${registry.username}:${registry.password}`;
  const ask = (instance: Instance) =>
    fetch(`http://${instance.address?.host}:${instance.address?.port}/`, { signal: AbortSignal.timeout(5000) })
      .then((answer) => answer.text())
      .catch(() => undefined);

  before(async () => {
    registry = await startTestRegistry();
    mkdirSync(trusted(), { recursive: true });
    copyFileSync(registry.caFile, `${trusted()}/ca.crt`);
    swarm = await makeSwarm(2, createGivenRegistry(repository(), login()));
    image_ref = await swarm.makeImage(project_id, { "server.js": server }, "node server.js");
  });
  after(async () => {
    await swarm?.close();
    rmSync(trusted(), { recursive: true, force: true });
    await registry?.close();
  });

  it("runs replicas on each machine from images that need the login", async () => {
    const workload: Workload = {
      ...{ id: "dep_given", project_id, project_number: 932, process: "web", image_ref, port: 3000 },
      ...{ env: {}, limits: { memoryBytes: 128 * 1024 * 1024, processes: 64, cpus: 1 }, reach: [] },
      storage_access: "none",
    };
    // A machine accepts replicas once it has pulled the guard's image from the same registry.
    await swarm.runtime.start({ ...workload, id: "dep_first" }, { ordinal: 0, attempt: 1 });
    await swarm.runtime.remove("dep_first");
    assert.ok(await until(async () => (await swarm.guarded()) === 2 || undefined, { timeoutMs: guardMs }));
    const instances = await Promise.all(
      [0, 1].map((ordinal) => swarm.runtime.start(workload, { ordinal, attempt: 1 })),
    );
    assert.equal(new Set(instances.map(({ address }) => address?.host)).size, 2);
    for (const instance of instances) assert.equal(await until(() => ask(instance), { timeoutMs: guardMs }), "here");
  });

  it("keeps the images there when Berth removes its own", async () => {
    const [engine] = swarm.machines;
    assert.ok(engine);
    const given = { api: engine.api, registry: createGivenRegistry(repository(), login()) };
    const name = await registeredImage(given, { project_id, image_ref });
    assert.ok(name.startsWith(`${repository()}/berth/${project_id}@sha256:`), name);
    await swarm.runtime.remove("dep_given");
    await swarm.runtime.removeImage({ project_id, image_ref });
    const headers = { "x-registry-auth": given.registry.authHeader };
    assert.ok(await engine.api.call({ path: `/distribution/${name}/json`, headers }));
  });

  it("says what the registry answers when the login is wrong", async () => {
    const [engine] = swarm.machines;
    assert.ok(engine);
    const image = await swarm.makeImage("prj_stranger", { "server.js": server }, "node server.js");
    const stranger = { api: engine.api, registry: createGivenRegistry(repository(), `${registry.username}:wrong`) };
    await assert.rejects(
      registeredImage(stranger, { project_id: "prj_stranger", image_ref: image }),
      /the registry did not accept the image: .*(unauthorized|authentication)/,
    );
  });
});
