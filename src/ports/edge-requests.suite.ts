import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "../../test/support/eventually.ts";
import { say, text, type Stage } from "./edge-stage.suite.ts";
import type { EdgeRequest } from "./edge.ts";

/** Rules about the log of requests. */
export function reporting(stage: Stage): void {
  const seen: EdgeRequest[] = [];
  const of = (hostname: string) => seen.filter(({ project_id }) => project_id === `prj_${hostname}`);
  const listen = async () => (await stage.edge()).reportRequests((requests) => void seen.push(...requests));

  test("a request is reported with its path without the query, its status, times, bytes, replica and id", async () => {
    await listen();
    const app = await stage.app(async (req, res) => {
      await text(req);
      res.writeHead(req.url === "/gone" ? 404 : 201).end("x".repeat(1000));
    });
    await stage.serve({ "log.test": [app], "dead.test": [await stage.deadTarget()] });
    const beganAt = new Date(Date.now() - 1).toISOString();
    const headers = { "x-request-id": "mine-1" };
    await stage.ask({ host: "log.test", path: "/a%20b/c?token=secret", headers });
    await stage.ask({ host: "log.test", path: "/gone", method: "POST", body: "x" });
    await stage.ask({
      host: "log.test",
      path: "/counted",
      method: "PUT",
      headers: { "transfer-encoding": "chunked" },
      body: "y",
    });
    await stage.ask({ host: "dead.test", path: "/", agent: stage.agentForFailures() });
    await eventually(() => of("log.test").length === 3 && of("dead.test").length === 1, "the requests are reported");
    const [first, second, third] = of("log.test");
    assert.deepEqual(
      [first, second, third].map((each) => [each?.method, each?.path, each?.status, each?.weight]),
      [
        ["GET", "/a%20b/c", 201, 1],
        ["POST", "/gone", 404, 1],
        ["PUT", "/counted", 201, 1],
      ],
    );
    assert.equal(first?.request_id, "mine-1");
    assert.match(`${second?.request_id}`, /^\S+$/);
    assert.deepEqual([first?.target, second?.target], [`${app.host}:${app.port}`, `${app.host}:${app.port}`]);
    assert.ok(first !== undefined && first.at >= beganAt && first.at <= new Date().toISOString(), first?.at);
    assert.ok(first.ms > 0 && first.ms < 60_000 && first.bytes > 1000, JSON.stringify(first));
    assert.equal(of("dead.test")[0]?.status, 502);
    assert.ok(!JSON.stringify(seen).includes("secret"));
  });

  test("requests of the platform itself and to unknown hosts are not reported, nor what a path could add to the log", async () => {
    await listen();
    const app = await stage.app(say("hello"));
    await stage.serve({ "quiet.test": [app] });
    const { headers } = (await (await stage.edge()).entrance()) ?? { headers: {} };
    await stage.ask({ host: "quiet.test", path: "/own", headers });
    await stage.ask({ host: "unknown.test", path: "/unknown" });
    await stage.ask({ host: "quiet.test", path: "/x%0aprj_other%201%201%20200" });
    await stage.ask({ host: "quiet.test", path: `/${"y".repeat(3000)}` });
    await eventually(() => of("quiet.test").length === 2, "the requests are reported");
    assert.equal(of("quiet.test")[0]?.path, "/x%0aprj_other%201%201%20200");
    const long = of("quiet.test")[1]?.path ?? "";
    assert.ok(long.length > 500 && long.length < 1500, `${long.length}`);
    assert.ok(
      !seen.some(({ path, project_id }) => path === "/own" || path === "/unknown" || project_id === "prj_other"),
    );
  });

  test("of a flood a part is reported, which says for how many it stands, and another project's are all reported", async () => {
    await listen();
    const app = await stage.app(say("hello"));
    await stage.serve({ "flood.test": [app], "calm.test": [app] });
    const sent = 2000;
    const flood = async () => {
      for (let i = 0; i < sent / 20; i += 1) await stage.ask({ host: "flood.test" });
    };
    const calm = async () => {
      for (let i = 0; i < 10; i += 1) await stage.ask({ host: "calm.test", path: `/${i}` });
    };
    await Promise.all([...Array.from({ length: 20 }, flood), calm()]);
    await eventually(() => of("calm.test").length === 10, "the calm project's requests are reported");
    const reported = of("flood.test");
    assert.ok(reported.length < sent / 2, `${reported.length} of ${sent}`);
    const told = reported.reduce((sum, { weight }) => sum + weight, 0);
    assert.ok(told > sent / 4 && told < sent * 4, `${reported.length} stand for ${told} of ${sent}`);
    assert.ok(of("calm.test").every(({ weight }) => weight === 1));
  });
}
