import assert from "node:assert/strict";
import { test } from "node:test";
import { route, suiteMaxBodyBytes, type Stage } from "./edge-stage.suite.ts";

/** A part of the edge's suite: the size limit of a request's body. */
export function bodyLimit(stage: Stage): void {
  /** Starts an application that counts the bodies that it received completely. */
  const receiver = async () => {
    const whole = { count: 0 };
    const app = await stage.app((req, res) => {
      req
        .on("error", () => {})
        .on("end", () => void ((whole.count += req.complete ? 1 : 0), res.end("whole")))
        .resume();
    });
    return { app, whole };
  };

  test("a body up to the limit passes, and one that states more is answered with 413 and never begins at the application", async () => {
    const { app, whole } = await receiver();
    await stage.serve({ "limit.test": [app] });
    const fits = "x".repeat(suiteMaxBodyBytes);
    assert.equal((await stage.ask({ host: "limit.test", method: "POST", body: fits })).body, "whole");
    for (const length of [`${suiteMaxBodyBytes + 1}`, `${2n ** 63n - 1n}`]) {
      const head = `POST / HTTP/1.1\r\nHost: limit.test\r\nContent-Length: ${length}\r\n\r\n`;
      assert.match(await stage.raw(head), /^HTTP\/1\.1 413 [\s\S]*x-berth-error: body_too_large/i, length);
    }
    assert.equal(whole.count, 1);
    const usage = await (await stage.edge()).measure();
    assert.equal(usage.find(({ project_id }) => project_id === "prj_limit.test")?.by_class["4"], 2);
  });

  test("a length that no body can have is refused, and its request never begins at the application", async () => {
    let begun = 0;
    const app = await stage.app((_, res) => void ((begun += 1), res.end()));
    await stage.serve({ "limit.test": [app] });
    const [half, whole] = [2n ** 63n, 2n ** 64n];
    const lengths = [half, half + 1n, whole - 2n, whole - 1n, whole, whole + 5n, whole * 10n].map(String);
    for (const length of [...lengths, `000${whole - 1n}`, `${whole - 1n}, ${whole - 1n}`]) {
      const head = `POST / HTTP/1.1\r\nHost: limit.test\r\nContent-Length: ${length}\r\n\r\n`;
      assert.match(await stage.raw(head), /^HTTP\/1\.1 4(?:00|13) /, length);
    }
    assert.equal(begun, 0);
  });

  test("the control plane gets bodies of every length, and has limits of its own", async () => {
    const { app } = await receiver();
    await stage.serveRoutes([{ ...route("control.test", [app]), is_control: true }]);
    const body = "x".repeat(suiteMaxBodyBytes + 1);
    for (const headers of [{ "content-length": `${body.length}` }, { "transfer-encoding": "chunked" }])
      assert.equal((await stage.ask({ host: "control.test", method: "POST", body, headers })).body, "whole");
  });

  if (stage.allows.passesLongChunks === true) return;
  test("a body in chunks that passes the limit does not arrive whole", async () => {
    const { app, whole } = await receiver();
    await stage.serve({ "chunks.test": [app] });
    const ask = (bytes: number) =>
      stage.ask({
        ...{ host: "chunks.test", method: "POST", body: "x".repeat(bytes) },
        headers: { "transfer-encoding": "chunked" },
      });
    assert.equal((await ask(suiteMaxBodyBytes)).body, "whole");
    const { status, headers } = await ask(suiteMaxBodyBytes + 1);
    assert.deepEqual([status, headers["x-berth-error"], whole.count], [413, "body_too_large", 1]);
  });
}
