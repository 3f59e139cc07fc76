import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, test } from "node:test";
import { testFolder } from "../../test/support/test-folder.ts";
import { StartRefused } from "./config.ts";
import { requireEngineSocket, requireOciRuntime } from "./container-family.ts";

test("a missing engine socket is refused in one sentence, which names the setting", async () => {
  const dir = testFolder("engine-socket");
  const engine = createServer().listen(join(dir, "docker.sock"));
  await once(engine, "listening");
  requireEngineSocket(join(dir, "docker.sock"));
  engine.close();
  assert.throws(
    () => requireEngineSocket(join(dir, "none.sock")),
    (error) =>
      error instanceof StartRefused && /none\.sock\. Start the engine, or .* BERTH_DOCKER_SOCKET/.test(error.message),
  );
});

describe("BERTH_DOCKER_RUNTIME at the start", () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-oci-runtime-"));
  const dockerSocket = join(dir, "docker.sock");
  let version = "20.10.24";
  const engine = createServer((_, response) => {
    response.end(JSON.stringify({ DockerRootDir: "/data", ServerVersion: version, Runtimes: { runc: {}, runsc: {} } }));
  });
  before(() => once(engine.listen(dockerSocket), "listening"));
  after(() => {
    engine.close();
    rmSync(dir, { recursive: true });
  });
  const start = (dockerRuntime: string | null, kind: "docker" | "swarm" = "docker", socket = dockerSocket) =>
    requireOciRuntime({ dockerRuntime, dockerSocket: socket }, kind);

  it("refuses a runtime that the engine does not have, and names the setting and the runtimes that it has", async () => {
    await assert.rejects(start("kata"), (error: Error) => {
      assert.ok(error instanceof StartRefused);
      assert.match(error.message, /^BERTH_DOCKER_RUNTIME=kata: .* only runc, runsc\./);
      return true;
    });
  });

  it("accepts one that the engine has, and none at all", async () => {
    await start("runsc");
    await start(null);
    await start(null, "swarm");
  });

  it("accepts a shim that the engine does not list from Docker 23 on, as that finds shims by name", async () => {
    await assert.rejects(start("io.containerd.runsc.v1"), StartRefused);
    version = "26.1.5";
    await start("io.containerd.runsc.v1");
    await assert.rejects(start("/usr/bin/runsc.sh"), StartRefused);
    version = "20.10.24";
  });

  it("refuses every runtime on a swarm, whose services cannot choose one", async () => {
    await assert.rejects(start("runsc", "swarm"), {
      name: "StartRefused",
      message: /^BERTH_DOCKER_RUNTIME=runsc does not work with BERTH_RUNTIME=swarm: /,
    });
  });

  it("starts while the engine does not answer", () => start("kata", "docker", join(dir, "none.sock")));
});
