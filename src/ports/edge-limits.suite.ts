import assert from "node:assert/strict";
import { test } from "node:test";
import { startRawApp } from "./edge-attack.suite.ts";
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
    // A server that checks lengths by itself would hide that it was asked.
    const app = await startRawApp(
      (socket) => void ((begun += 1), socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")),
    );
    await stage.serve({ "limit.test": [app.target] });
    const [half, whole] = [2n ** 63n, 2n ** 64n];
    const lengths = [half, half + 1n, whole - 2n, whole - 1n, whole, whole + 5n, whole * 10n].map(String);
    for (const length of [...lengths, `000${whole - 1n}`, `${whole - 1n}, ${whole - 1n}`]) {
      const head = `POST / HTTP/1.1\r\nHost: limit.test\r\nContent-Length: ${length}\r\n\r\n`;
      assert.match(await stage.raw(head), /^HTTP\/1\.1 4(?:00|13) /, length);
    }
    app.close();
    assert.equal(begun, 0);
  });

  test("the control plane gets bodies of every length, and has limits of its own", async () => {
    const { app } = await receiver();
    await stage.serveRoutes([{ ...route("control.test", [app]), is_control: true }]);
    const body = "x".repeat(suiteMaxBodyBytes + 1);
    for (const headers of [{ "content-length": `${body.length}` }, { "transfer-encoding": "chunked" }])
      assert.equal((await stage.ask({ host: "control.test", method: "POST", body, headers })).body, "whole");
  });

  test("a body in chunks that passes the limit does not arrive whole, with one replica or several", async () => {
    const [{ app, whole }, { app: second, whole: wholeOfSecond }] = [await receiver(), await receiver()];
    await stage.serve({ "chunks.test": [app], "several.test": [app, second] });
    const chunked = { "transfer-encoding": "chunked" };
    const fits = { method: "POST", headers: chunked, body: "x".repeat(suiteMaxBodyBytes) };
    // Many chunks that are small: HAProxy compares the size of a single one with the limit by itself.
    const part = `10000\r\n${"x".repeat(65_536)}\r\n`;
    const chunks = `Transfer-Encoding: chunked\r\n\r\n${part.repeat(suiteMaxBodyBytes / 65_536)}`;
    for (const [host, count] of [
      ["chunks.test", 1],
      ["several.test", 2],
    ] as const) {
      assert.equal((await stage.ask({ host, ...fits })).body, "whole");
      const answer = await stage.raw(`POST / HTTP/1.1\r\nHost: ${host}\r\n${chunks}4\r\nmore\r\n`);
      assert.match(answer, /^HTTP\/1\.1 413 [\s\S]*x-berth-error: body_too_large[\s\S]*larger than this server/i);
      assert.equal(whole.count + wholeOfSecond.count, count);
    }
    const usage = await (await stage.edge()).measure();
    const { requests, by_class } = usage.find(({ project_id }) => project_id === "prj_several.test") ?? {};
    assert.deepEqual([requests, by_class], [2, { "2": 1, "4": 1 }], "each is counted once");
  });
}
