import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, createServer, request, type IncomingMessage, type RequestListener } from "node:http";
import { connect, createServer as createTcpServer, type AddressInfo, type Server } from "node:net";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket, WebSocketServer } from "ws";
import type { Edge, Route, RouteState, Target } from "./edge.ts";
import { counting } from "./edge-counting.suite.ts";
import { hostility } from "./edge-hostile.suite.ts";

/**
 * Every rule an edge adapter must keep. `makeEdge` gives one that listens on loopback, on any free port; the suite stops it.
 * `peakMemoryMb` is the most that its processes have taken so far.
 */
export function edgeSuite(name: string, makeEdge: () => Promise<Edge>, peakMemoryMb: () => Promise<number>): void {
  describe(`edge ${name}`, () => {
    const stage = new Stage(makeEdge);
    after(() => stage.close());
    routing(stage);
    pages(stage);
    forwarding(stage);
    streaming(stage);
    changes(stage);
    refusals(stage);
    counting(stage);
    hostility(stage, peakMemoryMb);
    ending(stage);
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
    const busy = await stage.app(async (_req, res) => (await gate.promise, res.end("busy")));
    const idle = await stage.app(say("idle"));
    await stage.serve({ "two.test": [busy] });
    const held = stage.ask({ host: "two.test" });
    await stage.until(async () => (await stage.open(busy)) === 1);
    await stage.serve({ "two.test": [busy, idle] });
    for (let i = 0; i < 5; i += 1) assert.equal((await stage.ask({ host: "two.test" })).body, "idle");
    gate.resolve();
    assert.equal((await held).body, "busy");
  });

  test("a replica that refuses connections costs no request while another one answers", async () => {
    await stage.serve({ "pair.test": [await stage.deadTarget(), await stage.app(say("alive"))] });
    for (let i = 0; i < 10; i += 1)
      assert.equal((await stage.ask({ host: "pair.test", method: "POST", body: "b" })).body, "alive");
  });
}

function pages(stage: Stage): void {
  const cases: [RouteState | undefined, number][] = [
    [undefined, 404],
    ["empty", 404],
    ["deleted", 503],
    ["suspended", 503],
    ["serving", 502],
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

  test("an application that accepts no connection is a 502 that does not say where it runs", async () => {
    const dead = await stage.deadTarget();
    await stage.serve({ "dead.test": [dead] });
    const answer = await stage.ask({ host: "dead.test", headers: { accept: "text/html" } });
    assert.equal(answer.status, 502);
    assert.ok(!answer.body.includes(dead.host) && !answer.body.includes(String(dead.port)));
  });

  test("an application that closes without an answer is a 502", async () => {
    await stage.serve({ "rude.test": [await stage.app((_req, res) => void res.socket?.destroy())] });
    assert.equal((await stage.ask({ host: "rude.test" })).status, 502);
    assert.equal((await stage.ask({ host: "rude.test", method: "POST", body: "b" })).status, 502);
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
      ["127.0.0.1", "127.0.0.1", "http"],
    );
    assert.equal(seen["x-forwarded-host"], "fwd.test");
    assert.match(seen["x-request-id"] as string, /^\S{8,}$/);
    assert.ok(!answer.body.includes("6.6.6.6") && !answer.body.includes("evil") && !("x-secret" in seen));
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

  test("an application that answers early is heard, and the next request is served", async () => {
    await stage.serve({
      "early.test": [await stage.app((_req, res) => res.writeHead(413, { connection: "close" }).end("too large"))],
    });
    const body = "x".repeat(4 * 1024 * 1024);
    assert.equal((await stage.ask({ host: "early.test", method: "POST", body })).status, 413);
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
    const socket = new WebSocket(`ws://${await stage.listen()}/chat`, { headers: { host: "ws.test" } });
    await once(socket, "open");
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
    const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
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

function refusals(stage: Stage): void {
  const smuggled = {
    "both a length and chunks":
      "POST / HTTP/1.1\r\nHost: raw.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: raw.test\r\n\r\n",
    "two lengths": "POST / HTTP/1.1\r\nHost: raw.test\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "a malformed chunk":
      "POST / HTTP/1.1\r\nHost: raw.test\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "an unknown coding": "POST / HTTP/1.1\r\nHost: raw.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
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
      assert.match(answer, /^(?:HTTP\/1\.1 (?:4|501)|$)/);
      assert.ok(!answer.includes("reached") && !seen.includes("/evil"));
    });
  }
}

function ending(stage: Stage): void {
  test("stop lets open requests end, and may be called twice", async () => {
    const gate = Promise.withResolvers<void>();
    await stage.serve({
      "stop.test": [await stage.app(async (_req, res) => (res.write("a"), await gate.promise, res.end("b")))],
    });
    const response = await stage.open_({ host: "stop.test" });
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

/** What a test asks for. */
export interface Asked {
  readonly host: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly agent?: Agent;
}

/** One edge and the applications behind it, for tests. */
export class Stage {
  readonly agent = new Agent({ keepAlive: true });
  readonly #makeEdge: () => Promise<Edge>;
  readonly #servers: { close(): void; closeAllConnections?(): void }[] = [];
  #edge: Promise<Edge> | undefined;
  #version = 0;

  constructor(makeEdge: () => Promise<Edge>) {
    this.#makeEdge = makeEdge;
  }

  edge(): Promise<Edge> {
    return (this.#edge ??= this.#makeEdge());
  }

  /** Takes over another edge for what follows, such as a control plane that was started again. */
  use(edge: Edge): void {
    this.#edge = Promise.resolve(edge);
  }

  async listen(): Promise<string> {
    return (await (await this.edge()).observe()).listen as string;
  }

  /** Starts an application; with `echo` it also answers WebSockets with what they send. */
  async app(listener: RequestListener, echo = false): Promise<Target> {
    const server = createServer(listener);
    this.#servers.push(server);
    if (echo)
      new WebSocketServer({ server }).on("connection", (socket) =>
        socket.on("message", (message) => socket.send(message)),
      );
    return listening(server);
  }

  /** An address at which nothing listens. */
  async deadTarget(): Promise<Target> {
    const server = createTcpServer();
    const target = await listening(server);
    await new Promise((resolve) => server.close(resolve));
    return target;
  }

  /** Puts these hosts in force, each a project of its own; resolves with the table's version. */
  serve(hosts: Record<string, readonly Target[]>): Promise<number> {
    return this.serveRoutes(Object.entries(hosts).map(([hostname, targets]) => route(hostname, targets)));
  }

  async serveRoutes(routes: readonly Route[]): Promise<number> {
    const edge = await this.edge();
    this.#version += 10;
    await edge.apply({ version: this.#version, routes, challenge: null });
    return this.#version;
  }

  async open(target: Target): Promise<number> {
    return (await (await this.edge()).openRequests()).get(`${target.host}:${target.port}`) ?? 0;
  }

  /** Begins a request whose body the test writes itself. The edge must have been asked to `listen` or `serve` before. */
  begin(asked: Asked) {
    const [host, port] = this.#address();
    const headers = { host: asked.host, ...asked.headers };
    return request({
      host,
      port,
      path: asked.path ?? "/",
      method: asked.method ?? "GET",
      headers,
      agent: asked.agent ?? this.agent,
    });
  }

  /** Sends a request and gives its response as soon as its head is there. */
  async open_(asked: Asked): Promise<IncomingMessage> {
    await this.learnAddress();
    // Node's client sends the body of a DELETE without any framing of its own.
    const framed =
      asked.body === undefined || asked.headers?.["transfer-encoding"]
        ? {}
        : { "content-length": `${Buffer.byteLength(asked.body)}` };
    const outgoing = this.begin({ ...asked, headers: { ...framed, ...asked.headers } });
    const response = once(outgoing, "response") as Promise<[IncomingMessage]>;
    outgoing.end(asked.body);
    return (await response)[0];
  }

  async ask(asked: Asked): Promise<{ status: number; headers: IncomingMessage["headers"]; body: string }> {
    const response = await this.open_(asked);
    return { status: response.statusCode as number, headers: response.headers, body: await text(response) };
  }

  /** Sends bytes as they are and gives all that comes back until the edge closes. */
  async raw(bytes: string): Promise<string> {
    await this.learnAddress();
    const [host, port] = this.#address();
    const socket = connect({ host, port });
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    // A refusal may reset the connection while the client still writes.
    socket.on("error", () => {});
    socket.write(bytes);
    const closed = once(socket, "close");
    await Promise.race([closed, sleep(3000, undefined, { ref: false })]);
    socket.destroy();
    return Buffer.concat(chunks).toString("latin1");
  }

  async until(probe: () => Promise<boolean>): Promise<void> {
    for (let i = 0; i < 400; i += 1) {
      if (await probe()) return;
      await sleep(25);
    }
    assert.fail("did not come true within 10 s");
  }

  async close(): Promise<void> {
    this.agent.destroy();
    if (this.#edge !== undefined) await (await this.#edge).stop(0);
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections?.();
    }
  }

  async address(): Promise<{ host: string; port: number }> {
    await this.learnAddress();
    const [host, port] = this.#address();
    return { host, port };
  }

  /** Looks up where the edge listens now. */
  async learnAddress(): Promise<void> {
    this.#listen = (await this.listen()) ?? this.#listen;
  }

  #listen = "";

  #address(): [host: string, port: number] {
    const at = this.#listen.lastIndexOf(":");
    return [this.#listen.slice(0, at), Number(this.#listen.slice(at + 1))];
  }
}

/** Sends requests one after the other over a few connections, kept or new for each request, until it is stopped. */
export function startLoad(stage: Stage, host: string, { connections = 8, keepAlive = true } = {}) {
  const failures: string[] = [];
  let answered = 0;
  let running = true;
  const agent = new Agent({ keepAlive, maxSockets: connections });
  const workers = Array.from({ length: connections }, async () => {
    while (running) {
      const answer = await stage.ask({ host, agent }).catch((error: Error) => ({ status: 0, body: error.message }));
      if (answer.status !== 200) failures.push(`${answer.status} ${answer.body}`);
      answered += 1;
    }
  });
  /** Resolves when this many more requests have been answered. */
  const passed = async (more: number) => {
    const goal = answered + more;
    await stage.until(async () => answered >= goal);
  };
  const stop = async () => {
    running = false;
    await Promise.all(workers);
    agent.destroy();
    return { failures, answered };
  };
  return { passed, stop };
}

/** An application that always says this. */
export function say(words: string): RequestListener {
  return (_req, res) => void res.end(words);
}

/** The whole body as text. */
export async function text(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** A route over plain HTTP alone, of a project of its own. */
export function route(hostname: string, targets: readonly Target[]): Route {
  return { hostname, project_id: `prj_${hostname}`, state: "serving", targets, ...plain };
}

const plain = { https: "off", hsts: false } as const;

async function listening(server: Server): Promise<Target> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
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
