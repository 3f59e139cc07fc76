import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { importMinimalImage, startTestEngine, withoutDocker } from "./docker-engine.ts";

describe("a test engine", { skip: withoutDocker }, () => {
  it("runs a container of the minimal image, keeps it running across an engine restart, and removes all its files", async () => {
    const engine = await startTestEngine();
    try {
      const image = await importMinimalImage(engine.api);
      const body = { Image: image, Cmd: ["sh", "-c", "sleep 600"] };
      const { Id: id } = await engine.api.call<{ Id: string }>({ method: "POST", path: "/containers/create", body });
      await engine.api.call({ method: "POST", path: `/containers/${id}/start` });
      const startedAt = async () =>
        (await engine.api.call<{ State: { StartedAt: string } }>({ path: `/containers/${id}/json` })).State.StartedAt;
      const before = await startedAt();
      await engine.restart("SIGKILL");
      assert.equal(await startedAt(), before);
      const running = await engine.api.call<readonly unknown[]>({ path: "/containers/json" });
      assert.equal(running.length, 1);
    } finally {
      await engine.close();
    }
    assert.equal(existsSync(engine.dir), false);
  });
});
