import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { silentLog } from "../kit/log.ts";
import { openDatabase } from "../store/database.ts";
import { sharedApi, testOrganization, testToken, type TestApi } from "../../test/support/test-platform.ts";
import { createHttpServer } from "./server.ts";
import { guardMs } from "../../test/support/eventually.ts";

let isReady = true;
const api = await sharedApi({
  http: {
    checks: [
      { name: "database", check: async () => null },
      { name: "edge", check: async () => (isReady ? null : "The edge does not run.") },
    ],
    mounts: [
      {
        prefix: "/git/",
        async handle(request, response) {
          response.end(`${request.method} ${request.url} ${await text(request)}`);
        },
      },
    ],
  },
});
const org = await testOrganization(api.database.db, "acme");

const create = (body: unknown, headers: Record<string, string> = {}) =>
  api.call("POST", "/v1/projects", { token: org.member, body, headers });

test("a limit that is set otherwise is in force, and told by the capabilities", async () => {
  const limits = { bodyBytes: 2 * 1024 * 1024, readsPerMinute: 7 };
  const platform = { ...api.platform, limits: { pack_bytes: 1000 } };
  const server = createHttpServer({ platform, log: silentLog, checks: [], limits });
  try {
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    const base = `http://127.0.0.1:${port}`;
    const told = (await (await fetch(`${base}/v1/capabilities`)).json()) as { limits: Record<string, number> };
    const { request_body_bytes, row_body_bytes, reads_per_minute, pack_bytes, tree_entries } = told.limits;
    assert.deepEqual(
      [request_body_bytes, row_body_bytes, reads_per_minute, pack_bytes, tree_entries],
      [limits.bodyBytes, limits.bodyBytes, 7, 1000, 200_000],
    );
    const send = (path: string, size: number) => {
      const headers = { authorization: `Bearer ${org.owner}`, "content-type": "application/json" };
      return fetch(`${base}${path}`, { method: "POST", headers, body: JSON.stringify({ x: "x".repeat(size) }) });
    };
    const rows = "/v1/projects/none/data/tables/public/t/rows";
    assert.equal((await send("/v1/projects", 1.5 * 1024 * 1024)).status, 400);
    assert.equal((await send("/v1/projects", 2.5 * 1024 * 1024)).status, 413);
    assert.equal((await send(rows, 1.5 * 1024 * 1024)).status, 404);
    assert.equal((await send(rows, 2.5 * 1024 * 1024)).status, 413);
  } finally {
    await server.close();
  }
});

describe("what is malformed is refused before anything is looked up", () => {
  const cases: readonly (readonly [string, () => ReturnType<typeof create>, number, string])[] = [
    ["no JSON", () => create("{"), 400, "invalid_request"],
    ["a body that is no object", () => create("[1]"), 400, "invalid_request"],
    ["invalid UTF-8", () => create(Buffer.from([0x22, 0xff, 0x22])), 400, "invalid_request"],
    ["33 nested brackets", () => create(`${"[".repeat(33)}${"]".repeat(33)}`), 400, "invalid_request"],
    [
      "another content type",
      () => create("slug=a", { "content-type": "application/x-www-form-urlencoded" }),
      415,
      "unsupported_media_type",
    ],
    ["a body over 256 KiB", () => create({ slug: "a", name: "x".repeat(256 * 1024) }), 413, "payload_too_large"],
    ["a URL over 8 KiB", () => api.call("GET", `/v1/projects?q=${"a".repeat(8192)}`), 413, "payload_too_large"],
    [
      "broken percent-encoding",
      () => api.call("GET", "/v1/projects/%zz", { token: org.member }),
      400,
      "invalid_request",
    ],
  ];
  for (const [name, send, status, code] of cases) {
    test(`${name}: ${status}`, async () => {
      const called = await send();
      assert.equal(called.status, status, called.text);
      assert.equal(called.body["code"], code);
    });
  }

  test("syntax comes before authentication, authentication before everything else", async () => {
    const unknown = { headers: { "content-type": "application/json" } };
    assert.equal((await api.call("POST", "/v1/projects", { ...unknown, body: "{" })).status, 400);
    assert.equal((await api.call("POST", "/v1/projects", { ...unknown, body: { slug: "!" } })).status, 401);
  });

  test("brackets in strings don't nest", async () => {
    const called = await create({ slug: "brackets", name: "[".repeat(60) });
    assert.equal(called.status, 201, called.text);
  });

  test("every wrong field is named, unknown ones too, and no value is repeated", async () => {
    const { body, text: answer } = await create({ slug: "Not A Slug", nam: "geheim" });
    assert.deepEqual((body["details"] as { path: string }[]).map(({ path }) => path).sort(), ["nam", "name", "slug"]);
    assert.ok(!answer.includes("geheim"));
  });

  test("a refusal names a hundred problems at most, however many a body has", async () => {
    const fields = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`f${index}`, 0]));
    const many = await create({ slug: "many", name: "x", ...fields });
    assert.deepEqual([many.status, (many.body["details"] as unknown[]).length], [400, 100]);
    const scopes = Array.from({ length: 100_000 }, () => 0);
    const token = await api.call("POST", "/v1/api-tokens", { token: org.owner, body: { name: "x", scopes } });
    assert.equal(token.status, 400);
    assert.ok(token.text.length < 100_000, String(token.text.length));
  });

  test("a row without a body takes none", async () => {
    const called = await api.call("POST", "/v1/projects/none/undelete", { token: org.member, body: { x: 1 } });
    assert.equal(called.status, 404);
    await create({ slug: "bodiless", name: "x" });
    const refused = await api.call("POST", "/v1/projects/bodiless/undelete", { token: org.member, body: { x: 1 } });
    assert.deepEqual(
      [refused.status, refused.body["details"]],
      [400, [{ path: "x", message: "is not a field of this request" }]],
    );
    const empty = await api.call("POST", "/v1/projects/bodiless/undelete", { token: org.member, body: {} });
    assert.equal(empty.status, 409);
  });

  test("null and a list are no object, with a body or without one", async () => {
    for (const body of ["null", "[]"]) {
      const undeleted = await api.call("POST", "/v1/projects/bodiless/undelete", { token: org.member, body });
      assert.deepEqual([undeleted.status, undeleted.body["code"]], [400, "invalid_request"]);
      assert.equal((await create(body)).status, 400);
    }
  });

  test("an impossible name is missing rather than invalid", async () => {
    for (const slug of ["%00", "A%20B", "a".repeat(3000), "..%2Fother", "%F0%9F%98%80"]) {
      const called = await api.call("GET", `/v1/projects/${slug}`, { token: org.member });
      assert.deepEqual(
        [called.status, called.text],
        [404, (await api.call("GET", "/v1/projects/none", { token: org.member })).text],
      );
    }
  });
});

describe("every answer", () => {
  test("has a request id in its header alone, is not stored, and cannot be framed or sniffed", async () => {
    const answers = [
      await api.call("GET", "/v1/me", { token: org.member }),
      await api.call("GET", "/v1/me"),
      await api.call("GET", "/v1/no"),
    ];
    for (const { headers, text: body } of answers) {
      const id = headers.get("x-request-id") ?? "";
      assert.match(id, /^[0-9a-f-]{36}$/);
      assert.ok(!body.includes(id));
      assert.equal(headers.get("cache-control"), "no-store");
      assert.equal(headers.get("x-content-type-options"), "nosniff");
      assert.match(headers.get("content-security-policy") ?? "", /frame-ancestors 'none'/);
    }
  });

  test("has the security headers, also when it comes before the pipeline or from a mount", async () => {
    const raw = async (head: string) => {
      const socket = connect(api.port, "127.0.0.1");
      socket.write(head);
      const lines = (await text(socket)).split("\r\n\r\n")[0]?.split("\r\n").slice(1) ?? [];
      return new Headers(lines.map((line) => line.split(": ") as [string, string]));
    };
    const paths = ["/healthz", "/readyz", "/git/x", "/assets/none", "/nowhere", "/v1/%zz", `/x?${"a".repeat(9000)}`];
    const answers = await Promise.all(paths.map(async (path) => (await api.call("GET", path)).headers));
    answers.push(
      await raw("NONSENSE\r\n\r\n"),
      await raw(`GET / HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(20_000)}\r\n\r\n`),
    );
    answers.push(await raw("GET / HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n"));
    for (const [index, headers] of answers.entries()) {
      for (const name of ["cache-control", "content-security-policy", "referrer-policy", "x-content-type-options"])
        assert.ok(headers.get(name), `${paths[index] ?? "raw"} ${name}`);
    }
  });

  test("401 says how to authenticate", async () => {
    assert.equal((await api.call("GET", "/v1/me")).headers.get("www-authenticate"), "Bearer");
  });

  test("only the header authenticates", async () => {
    const called = await api.call("GET", `/v1/me?token=${org.member}&access_token=${org.member}`, {
      headers: { cookie: `token=${org.member}` },
    });
    assert.equal(called.status, 401);
  });

  test("an organization named anywhere but in the token has no effect", async () => {
    const other = await testOrganization(api.database.db, "other");
    const called = await api.call("GET", `/v1/me?org=${other.id}`, {
      token: org.member,
      headers: { "x-organization": other.slug },
    });
    assert.deepEqual(called.body["organization"], { id: org.id, slug: "acme", name: "acme" });
    const named = { org: other.slug, org_id: other.id, organization: other.slug, organization_id: other.id };
    const created = await create({ slug: "mine", name: "Mine", ...named });
    assert.equal(created.status, 201, created.text);
    const mine = await api.call("GET", "/v1/projects/mine", { token: org.member });
    assert.equal(mine.body["id"], created.body["id"]);
    const without = { token: org.member, body: named };
    assert.equal((await api.call("POST", "/v1/projects/mine/undelete", without)).body["code"], "conflict");
  });
});

describe("methods", () => {
  test("a path with another method answers 405 with Allow", async () => {
    const called = await api.call("PATCH", "/v1/projects/x", { token: org.member });
    assert.deepEqual(
      [called.status, called.body["code"], called.headers.get("allow")],
      [405, "method_not_allowed", "GET, DELETE, HEAD, OPTIONS"],
    );
  });

  test("OPTIONS answers with Allow, HEAD like GET without a body", async () => {
    const options = await api.call("OPTIONS", "/v1/projects");
    assert.deepEqual([options.status, options.headers.get("allow")], [204, "POST, GET, HEAD, OPTIONS"]);
    const head = await api.call("HEAD", "/v1/me", { token: org.member });
    assert.deepEqual([head.status, head.text], [200, ""]);
  });

  test("a path that is none answers 404", async () => {
    const called = await api.call("DELETE", "/v1/projects/x/y/z", { token: org.member });
    assert.deepEqual([called.status, called.body["code"]], [404, "not_found"]);
  });
});

test("what is no HTTP gets an error of the same form", async () => {
  const socket = connect(api.port, "127.0.0.1");
  await once(socket, "connect");
  socket.end("NONSENSE\r\n\r\n");
  const answer = await text(socket);
  assert.match(answer, /^HTTP\/1\.1 400 /);
  assert.match(answer, /"code":"invalid_request"/);
});

describe("the head of a request", () => {
  const whole = async (...lines: string[]) => {
    const socket = connect(api.port, "127.0.0.1");
    socket.write([...lines, "connection: close", "", ""].join("\r\n"));
    return text(socket);
  };
  const raw = async (...lines: string[]) => (await whole(...lines)).split("\r\n")[0];
  const me = "GET /v1/me HTTP/1.1";
  const token = () => `authorization: Bearer ${org.member}`;

  test("names this control plane, once", async () => {
    const { port } = api;
    for (const host of ["localhost", `127.0.0.1:${port}`, "[::1]:80", "berth.test", "BERTH.test.", "any.localhost"])
      assert.equal(await raw(me, `host: ${host}`, token()), "HTTP/1.1 200 OK", host);
    for (const host of ["evil.test", "berth.test.evil.test", "evil.test:80", "", "localhost.evil.test"])
      assert.equal(await raw(me, `host: ${host}`, token()), "HTTP/1.1 400 Bad Request", host);
    assert.equal(await raw(me, "host: localhost", "host: berth.test", token()), "HTTP/1.1 400 Bad Request");
    assert.equal(await raw("GET /git/x HTTP/1.1", "host: evil.test"), "HTTP/1.1 400 Bad Request");
  });

  test("without a host gets an error of the same form", async () => {
    const answer = await whole(me, token());
    assert.match(answer, /^HTTP\/1\.1 400 /);
    assert.match(answer, /"code":"invalid_request"/);
    assert.equal(await raw("GET /v1/me HTTP/1.0", token()), "HTTP/1.1 200 OK");
  });

  test("may offer another protocol or expect something; both are ignored", async () => {
    // Java's HTTP client offers HTTP/2 like this in its first request.
    const offer = ["connection: upgrade, http2-settings", "upgrade: h2c", "http2-settings: AAMAAABk"];
    assert.equal(await raw(me, "host: localhost", token(), ...offer), "HTTP/1.1 200 OK");
    assert.equal(await raw(me, "host: localhost", token(), "expect: something"), "HTTP/1.1 200 OK");
  });

  test("carries one token at most", async () => {
    const two = ["host: localhost", token(), "authorization: Bearer other"];
    assert.equal(await raw(me, ...two), "HTTP/1.1 400 Bad Request");
  });

  test("TRACE and CONNECT answer no more than that they are not taken", async () => {
    const line = await raw("TRACE /v1/me HTTP/1.1", "host: localhost", token());
    assert.match(line ?? "", /^HTTP\/1\.1 405 /);
  });
});

test("a mount gets its requests raw", async () => {
  const called = await api.call("POST", "/git/a/b.git/git-receive-pack?x=1", { body: "{not json" });
  assert.equal(called.text, "POST /git/a/b.git/git-receive-pack?x=1 {not json");
});

test("healthz answers always, readyz with the list of what is not ready", async () => {
  assert.equal((await api.call("GET", "/readyz")).status, 200);
  isReady = false;
  const { status, body } = await api.call("GET", "/readyz");
  assert.equal(status, 503);
  assert.deepEqual((body["checks"] as unknown[])[1], { name: "edge", ok: false, detail: "The edge does not run." });
  assert.equal((await api.call("GET", "/healthz")).status, 200);
});

test("without its database the API answers 503 and says when to come back, and nothing about the database", async () => {
  const away = openDatabase({ connection: { host: "/nonexistent", user: "nobody", database: "none" }, log: silentLog });
  const server = createHttpServer({ platform: { ...api.platform, db: away.db }, log: silentLog, checks: [] });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const response = await fetch(`http://127.0.0.1:${port}/v1/me`, {
    headers: { authorization: `Bearer ${org.member}` },
  });
  const body = await response.text();
  assert.deepEqual([response.status, response.headers.get("retry-after")], [503, "5"]);
  assert.equal((JSON.parse(body) as { code: string }).code, "unavailable");
  assert.ok(!/nonexistent|ENOENT|PGSQL/.test(body));
  await server.close();
  await away.close();
});

test("a fault of ours answers 500 without its text", async () => {
  const { db } = api.database;
  await create({ slug: "faulty", name: "x" });
  // Encrypted with an unknown key, so the vault refuses it.
  await db
    .insertInto("project_variable")
    .columns(["org_id", "project_id", "key", "sealed_value", "size_bytes"])
    .expression(
      db
        .selectFrom("project")
        .select([
          "org_id",
          "id",
          (of) => of.val("A").as("key"),
          (of) => of.val(Buffer.from("x")).as("v"),
          (of) => of.val(1).as("s"),
        ])
        .where("slug", "=", "faulty"),
    )
    .execute();
  const called = await api.call("PUT", "/v1/projects/faulty/env/A", { token: org.member, body: { value: "geheim" } });
  assert.deepEqual([called.status, called.body["code"]], [500, "internal"]);
  assert.ok(!/seal|vault|geheim|\.ts/i.test(called.text), called.text);
});

test("a client that leaves while it waits is no failure of ours", async () => {
  await create({ slug: "leaving", name: "x" });
  const careful = await testToken(api.database.db, org.id, { role: "owner", approval_mode: true });
  const asked = await api.call("DELETE", "/v1/projects/leaving", { token: careful.text });
  const { id } = asked.body["approval"] as { id: string };
  const failures: unknown[] = [];
  const log = { ...silentLog, error: (...given: unknown[]) => void failures.push(given) };
  const [waits, ends] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const on: TestApi["platform"]["wakeups"]["on"] = (topic, listener) => {
    const stop = api.platform.wakeups.on(topic, listener);
    if (topic === "approvals") waits.resolve();
    return () => {
      stop();
      if (topic === "approvals") ends.resolve();
    };
  };
  const platform = { ...api.platform, wakeups: { ...api.platform.wakeups, on } };
  const server = createHttpServer({ platform, log, checks: [] });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(
    `GET /v1/approvals/${id}?wait=30 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${org.member}\r\n\r\n`,
  );
  await waits.promise;
  socket.destroy();
  await ends.promise;
  await server.close();
  assert.deepEqual(failures, []);
});

test("a connection that was opened in advance, and never used, keeps no stop waiting", async () => {
  const server = createHttpServer({ platform: api.platform, log: silentLog, checks: [] });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const spare = connect(port, "127.0.0.1");
  await once(spare, "connect");
  const ended = once(spare, "close");
  spare.resume();
  assert.equal((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 200);
  await server.close();
  await ended;
});

test("a body that does not arrive in time ends the connection", async () => {
  const server = createHttpServer({
    platform: api.platform,
    log: silentLog,
    checks: [],
    limits: { requestTimeoutMs: 200 },
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(
    "POST /v1/projects HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{",
  );
  await once(socket.resume(), "close", { signal: AbortSignal.timeout(guardMs) });
  await server.close();
});
