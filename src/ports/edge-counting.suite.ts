import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import type { Stage } from "./edge-stage.suite.ts";

/** A part of the edge's suite: which traffic an edge counts, and which it doesn't. */
export function counting(stage: Stage): void {
  test("requests, classes, bytes and latency are counted per project", async () => {
    await stage.serve({
      "count.test": [
        await stage.app(
          (req, res) => void text(req).then(() => res.writeHead(req.url === "/bad" ? 500 : 200).end("12345")),
        ),
      ],
    });
    const count = async () =>
      (await (await stage.edge()).measure()).find((each) => each.project_id === "prj_count.test");
    const before = await count();
    for (const path of ["/", "/", "/bad"]) await stage.ask({ host: "count.test", path, method: "POST", body: "abc" });
    const now = await count();
    assert.ok(now !== undefined);
    assert.equal(now.requests - (before?.requests ?? 0), 3);
    assert.deepEqual(now.by_class, { "2": 2, "5": 1 });
    assert.ok(now.bytes_in >= 9 && now.bytes_out >= 15 && now.latency_sum_ms > 0);
    assert.equal(now.latency_buckets.at(-1), 3);
    assert.deepEqual(
      now.latency_buckets,
      now.latency_buckets.toSorted((a, b) => a - b),
    );
  });

  test("the platform's own requests come through the entrance, are not counted, and tell the application no secret", async () => {
    const seen: IncomingHttpHeaders[] = [];
    await stage.serve({ "own.test": [await stage.app((req, res) => (seen.push(req.headers), res.end("page")))] });
    const edge = await stage.edge();
    const entrance = await edge.entrance();
    assert.ok(entrance !== null);
    const answer = await stage.ask({ host: "own.test", headers: { ...entrance.headers } });
    assert.equal(answer.body, "page");
    assert.ok(Object.keys(entrance.headers).every((name) => seen[0]?.[name] === undefined));
    const [name = ""] = Object.keys(entrance.headers);
    await stage.ask({ host: "own.test", headers: { [name]: "a guess" } });
    assert.equal(seen[1]?.[name], undefined);
    const counted = (await edge.measure()).filter((each) => each.project_id === "prj_own.test");
    assert.deepEqual(
      counted.map((each) => each.requests),
      [1],
    );
  });
}
