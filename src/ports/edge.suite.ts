import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { after, describe, test } from "node:test";
import { sleeping } from "./edge-asleep.suite.ts";
import { counting } from "./edge-counting.suite.ts";
import { framing } from "./edge-framing.suite.ts";
import { hostility } from "./edge-hostile.suite.ts";
import { bodyLimit } from "./edge-limits.suite.ts";
import { plain, route, say, Stage, startLoad, text, type EdgeSuiteOptions } from "./edge-stage.suite.ts";
import { reporting } from "./edge-requests.suite.ts";
import { refusals } from "./edge-refusals.suite.ts";
import { encryption } from "./edge-tls.suite.ts";
import type { Edge, RouteState, Target } from "./edge.ts";

/**
 * The rules that every edge adapter obeys. `makeEdge` creates one that listens on any free loopback ports, for TLS too; the suite stops it.
 * `peakMemoryMb` returns the peak memory of its processes so far. `over` is the protocol of the clients.
 */
export function edgeSuite(
  name: string,
  makeEdge: () => Promise<Edge>,
  { peakMemoryMb, over, allows = {} }: EdgeSuiteOptions,
): void {
  describe(`edge ${name} over ${over}`, () => {
    const stage = new Stage(makeEdge, over, allows);
    after(() => stage.close());
    if (over === "https") encryption(stage);
    const hostile = () => hostility(stage, peakMemoryMb);
    const parts = [
      routing,
      pages,
      forwarding,
      streaming,
      bodyLimit,
      changes,
      refusals,
      framing,
      counting,
      sleeping,
      reporting,
      hostile,
      ending,
    ];
    for (const part of parts) part(stage);
  });
}

function routing(stage: Stage): void {
  test("a request goes to the project its host names, whatever its case, port or trailing dot", async () => {
    const [one, two] = [await stage.app(say("one")), await stage.app(say("two"))];
    await stage.serve({ "one.test": [one], "two.test": [two] });
    for (const host of ["one.test", "ONE.Test", "one.test:8080", "one.test."])
      assert.equal((await stage.ask({ host })).body, "one");
    assert.equal((await stage.ask({ host: "two.test" })).body, "two");
  });

  test("method, path and body arrive byte for byte", async () => {
    const echo = await stage.app(async (req, res) => res.end(`${req.method} ${req.url} ${await text(req)}`));
    await stage.serve({ "echo.test": [echo] });
    const path = "/a//b/../c%2F%zz?q=%C3%A4&&=;+'\"";
    assert.equal(
      (await stage.ask({ host: "echo.test", path, method: "PATCH", body: "x\0y" })).body,
      `PATCH ${path} x\0y`,
    );
    for (const method of ["DELETE", "OPTIONS", "PUT", "POST"]) {
      assert.equal((await stage.ask({ host: "echo.test", method, body: "b" })).body, `${method} / b`);
    }
  });

  test("HEAD, an empty answer and a redirect pass unchanged, and cookies stay apart", async () => {
    const app = await stage.app((req, res) => {
      if (req.url === "/none") return res.writeHead(204).end();
      return res
        .writeHead(302, { location: "/x", "set-cookie": ["a=1", "b=2"], "content-length": 3 })
        .end(req.method === "HEAD" ? undefined : "abc");
    });
    await stage.serve({ "head.test": [app] });
    const head = await stage.ask({ host: "head.test", method: "HEAD" });
    assert.deepEqual(
      [head.status, head.body, head.headers["content-length"], head.headers.location],
      [302, "", "3", "/x"],
    );
    assert.deepEqual(head.headers["set-cookie"], ["a=1", "b=2"]);
    assert.equal((await stage.ask({ host: "head.test", path: "/none" })).status, 204);
  });

  test("a client of HTTP/1.0 gets an answer without chunks", async () => {
    const app = await stage.app((_req, res) => void (res.write("a"), res.end("b")));
    await stage.serve({ "old.test": [app] });
    const answer = await stage.raw("GET / HTTP/1.0\r\nHost: old.test\r\n\r\n");
    assert.match(answer, /^HTTP\/1\.[01] 200[\s\S]*\r\n\r\nab$/);
  });

  test("a request without a host gets the page of unknown hosts", async () => {
    await stage.serve({ "other.test": [await stage.app(say("never called"))] });
    const answer = await stage.raw("GET / HTTP/1.0\r\n\r\n");
    assert.match(answer, /^HTTP\/1\.[01] 404 [\s\S]*x-berth-error: unknown_host/i);
  });

  test("a target in absolute form is served when it names the host of the request, and refused when it names another", async () => {
    await stage.serve({ "abs.test": [await stage.app((req, res) => res.end(`${req.headers.host} ${req.url}`))] });
    const ask = (host: string) =>
      stage.raw(`GET http://abs.test/p?q HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    const served = await ask("abs.test");
    assert.ok(served.includes("abs.test /p?q"), served);
    assert.match(await ask("other.test"), /^HTTP\/1\.1 400 /);
  });

  test("requests go to the replica with the fewest open ones", async () => {
    const gate = Promise.withResolvers<void>();
    const replica = (name: string) =>
      stage.app(async (req, res) => (req.url === "/held" ? await gate.promise : undefined, res.end(name)));
    const [one, two] = [await replica("one"), await replica("two")];
    await stage.serve({ "two.test": [one, two] });
    const held = stage.ask({ host: "two.test", path: "/held" });
    await stage.until(async () => (await stage.open(one)) + (await stage.open(two)) === 1);
    const idle = (await stage.open(one)) === 1 ? "two" : "one";
    for (let i = 0; i < 5; i += 1) assert.equal((await stage.ask({ host: "two.test" })).body, idle);
    gate.resolve();
    assert.notEqual((await held).body, idle);
  });

  test("a replica that serves alone, then beside another, then alone again loses no request, and what is open is known", async () => {
    const gate = Promise.withResolvers<void>();
    let arrived = 0;
    const slow = await stage.app(async (req, res) => {
      if (req.url === "/held") await ((arrived += 1), gate.promise);
      res.end("slow");
    });
    const other = await stage.app(say("other"));
    await stage.serve({ "scale.test": [slow] });
    const held = [stage.ask({ host: "scale.test", path: "/held" })];
    await stage.until(async () => (await stage.open(slow)) === 1);
    await stage.serve({ "scale.test": [slow, other] });
    for (let i = 0; i < 4; i += 1) assert.equal((await stage.ask({ host: "scale.test" })).status, 200);
    await stage.serve({ "scale.test": [slow] });
    held.push(stage.ask({ host: "scale.test", path: "/held" }));
    // The edge may still count a request that has just ended, so the application says that both are there.
    await stage.until(async () => arrived === 2 && (await stage.open(slow)) === 2);
    await stage.serve({ "scale.test": [other] });
    assert.equal((await stage.ask({ host: "scale.test" })).body, "other");
    assert.equal(await stage.open(slow), 2, "requests go on at a replica that is out");
    gate.resolve();
    for (const each of held) assert.equal((await each).body, "slow");
    await stage.until(async () => (await stage.open(slow)) === 0);
  });

  test("over kept connections each request reaches its own project's replica, whatever shares its port, and also when replicas change", async () => {
    const first = await stage.app(say("first"));
    const at = (host: string) => ({ host, port: first.port });
    const second = await stage.app(say("second"), false, at("127.0.0.2"));
    const third = await stage.app(say("third"), false, at("127.0.0.3"));
    const agent = stage.newAgent({ keepAlive: true, maxSockets: 4 });
    const rounds = [
      { "one.test": first, "two.test": second, "six.test": third },
      { "one.test": third, "two.test": second, "six.test": first },
      { "one.test": second, "two.test": first, "six.test": third },
    ] as const;
    const words = new Map([first, second, third].map((target, i) => [target, ["first", "second", "third"][i]]));
    for (const round of rounds) {
      const hosts = Object.entries(round);
      await stage.serve(Object.fromEntries(hosts.map(([host, target]) => [host, [target]])));
      const asked = Array.from({ length: 60 }, async (_, i) => {
        const [host, target] = hosts[(i * 7) % 3] as (typeof hosts)[number];
        return [(await stage.ask({ host, agent })).body, words.get(target)];
      });
      for (const [got, expected] of await Promise.all(asked)) assert.equal(got, expected);
    }
    agent.destroy();
  });

  test("a replica that refuses connections costs no request while another one answers", async () => {
    await stage.serve({ "pair.test": [await stage.deadTarget(), await stage.app(say("alive"))] });
    for (let i = 0; i < 10; i += 1)
      assert.equal((await stage.ask({ host: "pair.test", method: "POST", body: "b" })).body, "alive");
  });

  test("a GET that a replica leaves without an answer is answered by another one, and a POST is sent to one alone", async () => {
    const seen: string[] = [];
    const rude = await stage.app((req, res) => (seen.push(`rude ${req.method} ${req.headers.host}`), res.destroy()));
    const good = await stage.app((req, res) => (seen.push(`good ${req.method} ${req.headers.host}`), res.end("good")));
    // An edge may avoid a failed replica for a while, so each request here is the first one of its project.
    const hosts = Array.from({ length: 12 }, (_, i) => `again-${i}.test`);
    await stage.serve(Object.fromEntries(hosts.map((host) => [host, [rude, good]])));
    for (const [i, host] of hosts.entries()) {
      const method = i % 2 === 0 ? "GET" : "POST";
      const { status } = await stage.ask({ host, method, agent: stage.agentForFailures() });
      const times = seen.filter((each) => each.endsWith(` ${method} ${host}`));
      if (method === "GET") assert.equal(status, 200);
      else assert.deepEqual([times.length, status], [1, times[0]?.startsWith("good") ? 200 : 502]);
    }
    for (const method of ["GET", "POST"])
      assert.ok(
        seen.some((each) => each.startsWith(`rude ${method}`)),
        method,
      );
  });

  test("several replicas that refuse connections, as those of a lost machine do, cost none either", async () => {
    const targets = [
      await stage.deadTarget(),
      await stage.deadTarget(),
      await stage.app(say("alive")),
      await stage.app(say("alive")),
    ];
    await stage.serve({ "lost.test": targets });
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => stage.ask({ host: "lost.test" })));
      assert.deepEqual([...new Set(answers.map(({ body }) => body))], ["alive"]);
    }
  });
}

function pages(stage: Stage): void {
  const cases: [RouteState | undefined, number][] = [
    [undefined, 404],
    ["empty", 404],
    ["deleted", 503],
    ["suspended", 503],
    ["maintenance", 503],
    ["serving", 503],
  ];
  for (const [state, status] of cases) {
    test(`a host that is ${state === "serving" ? "without a running instance" : (state ?? "unknown")} is answered with ${status}`, async () => {
      await stage.serveRoutes(
        state === undefined ? [] : [{ hostname: "page.test", project_id: "prj_page", state, targets: [], ...plain }],
      );
      const answer = await stage.ask({ host: "page.test" });
      assert.equal(answer.status, status);
      if (status === 503) assert.match(`${answer.headers["cache-control"]}`, /no-store/);
      if (status === 503) assert.match(`${answer.headers["retry-after"]}`, /^\d+$/);
      assert.match(String(answer.headers["x-berth-error"]), /^[a-z_]+$/);
    });
  }

  test("the page of maintenance says the owner's words in each form, and its answers are not counted", async () => {
    const notice = `Moving <b>"house"</b> & 100 % back at 5 o'clock \\ ${"é".repeat(200)} 🚧`;
    const route = {
      hostname: "down.test",
      project_id: "prj_down",
      state: "maintenance",
      targets: [],
      ...plain,
    } as const;
    await stage.serveRoutes([{ ...route, notice }]);
    const ask = (accept: string) => stage.ask({ host: "down.test", headers: { accept } });
    const html = await ask("text/html");
    assert.ok(html.body.includes(`Moving &#60;b&#62;&#34;house&#34;&#60;/b&#62; &#38; 100 % back`), html.body);
    assert.match(html.body, /é{200} 🚧<\/p>/);
    assert.equal((JSON.parse((await ask("application/json")).body) as { error: string }).error, notice);
    assert.ok((await ask("*/*")).body.includes(notice));
    assert.deepEqual(
      [html.status, html.headers["retry-after"], html.headers["x-berth-error"]],
      [503, "120", "maintenance"],
    );
    await stage.serveRoutes([route]);
    assert.match((await ask("*/*")).body, /down for maintenance/);
    const usage = await (await stage.edge()).measure();
    assert.equal(usage.find(({ project_id }) => project_id === "prj_down")?.requests ?? 0, 0);
  });

  test("a name that redirects sends every request to the other name with path and query, and to no other by any Host", async () => {
    const app = await stage.app(say("app"));
    const base = route("away.test", [app]);
    const port = stage.over === "https" ? `:${(await stage.listen()).split(":").at(-1)}` : "";
    await stage.serveRoutes([{ ...base, redirect_to: { hostname: "moved.test", https: stage.over === "https" } }]);
    const place = async (host: string, more = {}) => {
      const path = "/a//b?q=%C3%A4&&=;+";
      const { status, headers, body } = await stage.ask({ host, path, ...more });
      assert.deepEqual([status, body, headers["cache-control"]], [308, "", "max-age=3600"]);
      return headers.location;
    };
    const target = `${stage.over}://moved.test${port}/a//b?q=%C3%A4&&=;+`;
    assert.equal(await place("away.test"), target);
    assert.equal(
      await place("AWAY.test", { method: "POST", body: "x", headers: { "transfer-encoding": "chunked" } }),
      target,
    );
    if (stage.over === "http") {
      assert.equal(await place("away.test:8080"), "http://moved.test:8080/a//b?q=%C3%A4&&=;+");
      const { headers } = await stage.ask({ host: "away.test:@evil.test" });
      assert.doesNotMatch(`${headers.location}`, /evil/);
    }
    for (const state of ["asleep", "maintenance", "empty"] as const) {
      await stage.serveRoutes([{ ...base, state, redirect_to: { hostname: "moved.test", https: true } }]);
      assert.match(`${await place("away.test")}`, /^https:\/\/moved\.test/);
    }
    await stage.serveRoutes([base]);
    assert.equal((await stage.ask({ host: "away.test" })).body, "app");
  });

  test("a request that is under way when maintenance begins gets its answer", async () => {
    const gate = Promise.withResolvers<void>();
    const slow = await stage.app(async (_req, res) => (await gate.promise, res.end("done")));
    await stage.serve({ "busy.test": [slow] });
    const held = stage.ask({ host: "busy.test" });
    await stage.until(async () => (await stage.open(slow)) === 1);
    const state = "maintenance" as const;
    await stage.serveRoutes([{ hostname: "busy.test", project_id: "prj_busy.test", state, targets: [], ...plain }]);
    assert.equal((await stage.ask({ host: "busy.test", agent: stage.agentForFailures() })).status, 503);
    gate.resolve();
    assert.equal((await held).body, "done");
  });

  test("an application that accepts no connection is a 502 that does not say where it runs", async () => {
    const dead = await stage.deadTarget();
    await stage.serve({ "dead.test": [dead] });
    const answer = await stage.ask({ host: "dead.test", headers: { accept: "text/html" } });
    assert.equal(answer.status, 502);
    assert.ok(!answer.body.includes(dead.host) && !answer.body.includes(String(dead.port)));
  });

  test("an application that closes without an answer is a 502", async () => {
    await stage.serve({ "rude.test": [await stage.app((_req, res) => void res.socket?.destroy())] });
    for (const asked of [{}, { method: "POST", body: "b" }])
      assert.equal((await stage.ask({ host: "rude.test", agent: stage.agentForFailures(), ...asked })).status, 502);
  });
}

function forwarding(stage: Stage): void {
  test("what a client claims about forwarding is replaced", async () => {
    await stage.serve({ "fwd.test": [await stage.app((req, res) => res.end(JSON.stringify(req.headers)))] });
    const claims = {
      "x-forwarded-for": "6.6.6.6",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "evil",
      "x-real-ip": "6.6.6.6",
      forwarded: "for=6.6.6.6",
    };
    const sly = {
      x_forwarded_for: "6.6.6.6",
      "X-Forwarded-Prefix": "/evil",
      connection: "x-real-ip, x-secret",
      "x-secret": "1",
    };
    const answer = await stage.ask({ host: "fwd.test", headers: { ...claims, ...sly } });
    const seen = JSON.parse(answer.body) as Record<string, string>;
    assert.deepEqual(
      [seen["x-forwarded-for"], seen["x-real-ip"], seen["x-forwarded-proto"]],
      ["127.0.0.1", "127.0.0.1", stage.over],
    );
    assert.deepEqual([seen["x-forwarded-host"], seen["forwarded"]], ["fwd.test", undefined]);
    assert.match(seen["x-request-id"] as string, /^\S{8,}$/);
    assert.ok(!answer.body.includes("6.6.6.6") && !answer.body.includes("evil") && !("x-secret" in seen));
    // Each of them alone, too: an edge may look for all of them only if a request has one.
    for (const name of [
      "x-forwarded-prefix",
      "x_forwarded-for",
      "x_real_ip",
      "proxy",
      "proxy_authorization",
      "http2-settings",
    ]) {
      const { body } = await stage.ask({ host: "fwd.test", headers: { [name]: "6.6.6.6" } });
      assert.ok(!body.includes("6.6.6.6"), name);
    }
  });

  test("only requests for the control plane carry the headers that the edge and the platform alone know", async () => {
    const showHeaders = await stage.app((req, res) => res.end(JSON.stringify(req.headers)));
    const control = { ...route("control.test", [showHeaders]), is_control: true };
    await stage.serveRoutes([control, route("app.test", [showHeaders])]);
    const { headers = {} } = (await (await stage.edge()).entrance()) ?? {};
    const forged = Object.fromEntries(Object.keys(headers).map((name) => [name, "forged"]));
    const seen = async (host: string) =>
      JSON.parse((await stage.ask({ host, headers: forged })).body) as Record<string, string>;
    const [atControl, atApp] = [await seen("control.test"), await seen("app.test")];
    assert.ok(Object.keys(headers).length > 0);
    for (const [name, value] of Object.entries(headers)) {
      assert.equal(atControl[name], value);
      assert.ok(!(name in atApp));
    }
  });

  test("a client's request id is kept", async () => {
    await stage.serve({ "id.test": [await stage.app((req, res) => res.end(req.headers["x-request-id"] as string))] });
    assert.equal((await stage.ask({ host: "id.test", headers: { "x-request-id": "abc-123" } })).body, "abc-123");
  });
}

function streaming(stage: Stage): void {
  test("a response is passed on while the application still writes it", async () => {
    const gate = Promise.withResolvers<void>();
    await stage.serve({
      "sse.test": [
        await stage.app(async (_req, res) => (res.write("data: 1\n\n"), await gate.promise, res.end("data: 2\n\n"))),
      ],
    });
    const response = await stage.open_({ host: "sse.test" });
    const [first] = (await once(response, "data")) as [Buffer];
    assert.equal(first.toString(), "data: 1\n\n");
    gate.resolve();
    assert.equal(await text(response), "data: 2\n\n");
  });

  test("a request is passed on while the client still writes it", async () => {
    const first = Promise.withResolvers<string>();
    const app = await stage.app((req, res) => {
      req.once("data", (chunk: Buffer) => first.resolve(chunk.toString()));
      void text(req).then((rest) => res.end(rest));
    });
    await stage.serve({ "up.test": [app] });
    const outgoing = stage.begin({ host: "up.test", method: "POST" });
    outgoing.write("begun");
    assert.equal(await first.promise, "begun");
    const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
    outgoing.end(" done");
    assert.equal(await text((await answered)[0]), "begun done");
  });

  test("large bodies arrive whole in both directions", async () => {
    await stage.serve({ "big.test": [await stage.app((req, res) => void req.pipe(res))] });
    const body = "0123456789abcdef".repeat(256 * 1024);
    for (const headers of [{ "content-length": String(body.length) }, { "transfer-encoding": "chunked" }]) {
      assert.equal((await stage.ask({ host: "big.test", method: "POST", body, headers })).body === body, true);
    }
  });

  test("every byte of an answer arrives as it is, short or long, with a length or in chunks", async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    const answers = [bytes, Buffer.concat(Array.from({ length: 100 }, () => bytes))];
    const app = await stage.app((req, res) => {
      const [, size, framing] = (req.url as string).split("/");
      const body = answers[Number(size)] as Buffer;
      if (framing === "chunks") res.write(body.subarray(0, 7));
      res.end(framing === "chunks" ? body.subarray(7) : body);
    });
    await stage.serve({ "bytes.test": [app] });
    for (const path of ["/0/length", "/0/chunks", "/1/length", "/1/chunks"]) {
      const chunks: Buffer[] = [];
      for await (const chunk of await stage.open_({ host: "bytes.test", path })) chunks.push(chunk as Buffer);
      assert.ok(Buffer.concat(chunks).equals(answers[Number(path[1])] as Buffer), path);
    }
  });

  test("an application that answers early is heard, and the next request is served", async () => {
    await stage.serve({
      "early.test": [await stage.app((_req, res) => res.writeHead(413, { connection: "close" }).end("too large"))],
    });
    const body = "x".repeat(4 * 1024 * 1024);
    const early = await stage
      .ask({ host: "early.test", method: "POST", body })
      .catch((error: NodeJS.ErrnoException) => {
        if (stage.allows.cutsEarlyAnswers !== true || !["ECONNRESET", "EPIPE"].includes(error.code ?? "")) throw error;
        return { status: 413 };
      });
    assert.equal(early.status, 413);
    assert.equal((await stage.ask({ host: "early.test" })).status, 413);
  });

  test("Expect: 100-continue is answered before the body", async () => {
    await stage.serve({ "expect.test": [await stage.app(async (req, res) => res.end(await text(req)))] });
    const outgoing = stage.begin({
      host: "expect.test",
      method: "POST",
      headers: { expect: "100-continue", "content-length": "4" },
    });
    outgoing.flushHeaders();
    await once(outgoing, "continue");
    const answered = once(outgoing, "response") as Promise<[IncomingMessage]>;
    outgoing.end("body");
    assert.equal(await text((await answered)[0]), "body");
  });

  test("a client that goes away ends the request at the application", async () => {
    const gone = Promise.withResolvers<void>();
    const app = await stage.app((_req, res) => void (res.write("x"), res.on("close", () => gone.resolve())));
    await stage.serve({ "leave.test": [app] });
    const response = await stage.open_({ host: "leave.test" });
    response.destroy();
    await gone.promise;
    await stage.until(async () => (await stage.open(app)) === 0);
  });

  test("an answer that breaks off is not passed on as a whole one", async () => {
    await stage.serve({
      "cut.test": [
        await stage.app(
          (_req, res) => (res.writeHead(200, { "content-length": 100 }), void res.write("half", () => res.destroy())),
        ),
      ],
    });
    await assert.rejects(stage.ask({ host: "cut.test" }));
  });
}

function changes(stage: Stage): void {
  test("a table with a smaller version is ignored", async () => {
    const [now, before] = [await stage.app(say("now")), await stage.app(say("before"))];
    const version = await stage.serve({ "ver.test": [now] });
    await (await stage.edge()).apply({ version: version - 1, routes: [route("ver.test", [before])], challenge: null });
    assert.equal((await stage.ask({ host: "ver.test" })).body, "now");
    assert.equal((await (await stage.edge()).observe()).route_version, version);
  });

  test("a WebSocket and a running request outlive the change and the end of their route", async () => {
    const gate = Promise.withResolvers<void>();
    const old = await stage.app(async (_req, res) => (res.write("a"), await gate.promise, res.end("b")), true);
    await stage.serve({ "ws.test": [old] });
    const socket = await stage.webSocket("ws.test");
    const running = await stage.open_({ host: "ws.test" });
    assert.equal(await stage.open(old), 2);
    await stage.serve({ "ws.test": [await stage.app(say("new"))] });
    assert.equal((await stage.ask({ host: "ws.test" })).body, "new");
    await stage.serve({});
    socket.send("still there");
    assert.equal(String((await once(socket, "message"))[0]), "still there");
    gate.resolve();
    assert.equal(await text(running), "ab");
    socket.close();
    await stage.until(async () => (await stage.open(old)) === 0);
  });

  test("a refused WebSocket gets the application's answer, and one to an unknown host gets a page", async () => {
    await stage.serve({ "no.test": [await stage.app(say("never called"))] });
    const key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n`;
    const unknown = await stage.raw(`GET / HTTP/1.1\r\nHost: gone.test\r\n${upgrade}`);
    assert.match(unknown, /^HTTP\/1\.1 404 [\s\S]*x-berth-error: unknown_host/i);
    const refused = await stage.raw(`GET / HTTP/1.1\r\nHost: no.test\r\n${upgrade}`);
    assert.match(refused, /^HTTP\/1\.1 200 [\s\S]*never called$/);
  });

  test("no request fails during 50 route changes under keep-alive load", async () => {
    const apps = [await stage.app(say("a")), await stage.app(say("b")), await stage.app(say("c"))];
    await stage.serve({ "load.test": [apps[0] as Target] });
    const load = startLoad(stage, "load.test");
    for (let i = 0; i < 50; i += 1) {
      await stage.serve({
        "load.test": [apps[i % 3] as Target, ...(i % 2 ? [apps[(i + 1) % 3] as Target] : [])],
        [`other-${i}.test`]: [],
      });
      await load.passed(4);
    }
    assert.deepEqual((await load.stop()).failures, []);
  });
}

function ending(stage: Stage): void {
  test("stop lets open requests end, and may be called twice", async () => {
    const gate = Promise.withResolvers<void>();
    await stage.serve({
      "stop.test": [await stage.app(async (_req, res) => (res.write("a"), await gate.promise, res.end("b")))],
    });
    // Use a new connection, because an idle one may be closing.
    const response = await stage.open_({ host: "stop.test", agent: stage.newAgent() });
    const edge = await stage.edge();
    const listen = await stage.listen();
    const stopped = edge.stop(10_000);
    await stage.until(() => refusesConnections(listen));
    gate.resolve();
    assert.equal(await text(response), "ab");
    await stopped;
    await edge.stop(0);
    assert.equal((await edge.observe()).running, false);
  });
}

async function refusesConnections(listen: string): Promise<boolean> {
  const at = listen.lastIndexOf(":");
  const socket = connect({ host: listen.slice(0, at), port: Number(listen.slice(at + 1)) });
  const refused = await once(socket, "connect").then(
    () => false,
    () => true,
  );
  socket.destroy();
  return refused;
}
