import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { testFolder } from "../../test/support/test-folder.ts";
import { requireEngineSocket } from "./require-engine-socket.ts";
import { StartRefused } from "./start-refused.ts";

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
