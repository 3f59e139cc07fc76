import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { say, text, type Stage } from "./edge-stage.suite.ts";

/**
 * A part of the edge's suite: an edge refuses requests that two servers could read differently, and more open ones than a project may have.
 */
export function refusals(stage: Stage): void {
  const smuggled = {
    "both a length and chunks":
      "POST / HTTP/1.1\r\nHost: raw.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: raw.test\r\n\r\n",
    "two lengths": "POST / HTTP/1.1\r\nHost: raw.test\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "a malformed chunk":
      "POST / HTTP/1.1\r\nHost: raw.test\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "an unknown coding": "POST / HTTP/1.1\r\nHost: raw.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "two codings": "POST / HTTP/1.1\r\nHost: raw.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two hosts": "GET / HTTP/1.1\r\nHost: raw.test\r\nHost: other.test\r\nConnection: close\r\n\r\n",
    "a space before a colon": "GET / HTTP/1.1\r\nHost : raw.test\r\nConnection: close\r\n\r\n",
    "a header of 100 KB": `GET / HTTP/1.1\r\nHost: raw.test\r\nX-Big: ${"x".repeat(100_000)}\r\n\r\n`,
    "the method TRACE": "TRACE / HTTP/1.1\r\nHost: raw.test\r\nConnection: close\r\n\r\n",
    "the method CONNECT": "CONNECT raw.test:443 HTTP/1.1\r\nHost: raw.test:443\r\n\r\n",
  };
  for (const [what, bytes] of Object.entries(smuggled)) {
    test(`a request with ${what} is refused`, async () => {
      const seen: string[] = [];
      await stage.serve({
        "raw.test": [
          await stage.app(
            (req, res) =>
              void (seen.push(`${req.url}`),
              text(req).then(
                () => res.end("reached"),
                () => {},
              )),
          ),
        ],
      });
      const answer = await stage.raw(bytes);
      if (what === "both a length and chunks" && stage.allows.readsChunksBesideLength) {
        // RFC 9112 §6.1: read by its chunks alone, and the connection closes after the response.
        assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*reached$/i);
        assert.ok(!seen.includes("/evil"));
        return;
      }
      assert.match(answer, /^(?:HTTP\/1\.1 (?:4|501)|$)/);
      assert.ok(!answer.includes("reached") && !seen.includes("/evil"));
    });
  }

  test("a project with 1,000 open requests gets no more of them, and its neighbour is served", async () => {
    const gate = Promise.withResolvers<void>();
    const full = await stage.app(async (_req, res) => (await gate.promise, res.end("late")));
    await stage.serve({ "full.test": [full], "free.test": [await stage.app(say("free"))] });
    assert.equal((await stage.ask({ host: "free.test" })).body, "free");
    const hold = async () => {
      const [answer] = (await once(stage.begin({ host: "full.test" }).end(), "response")) as [IncomingMessage];
      return text(answer);
    };
    const held: Promise<string>[] = [];
    // Open a few at a time: this process is both their client and their application, and sends requests to the edge meanwhile.
    while (held.length < 1000) {
      for (let i = 0; i < 100; i += 1) held.push(hold());
      await stage.until(async () => (await stage.open(full)) === held.length);
    }
    const refused = await stage.ask({ host: "full.test", headers: { accept: "application/json" } });
    assert.deepEqual([refused.status, refused.headers["retry-after"]], [503, "1"], refused.body);
    assert.match(refused.body, /app_busy|Too many open requests/);
    assert.equal((await stage.ask({ host: "free.test" })).body, "free");
    gate.resolve();
    for (const body of await Promise.all(held)) assert.equal(body, "late");
    assert.equal((await stage.ask({ host: "full.test" })).body, "late");
  });
}
