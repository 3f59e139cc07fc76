import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request, type IncomingMessage } from "node:http";
import { connect, createServer as createTcpServer, type AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { eventually } from "../../test/support/eventually.ts";
import { testProject } from "../../test/support/fixtures.ts";
import { testApi, testOrganization, type TestApi, type TestOrganization } from "../../test/support/test-platform.ts";
import { removeControlPlane, saveControlPlane } from "../features/control-planes/control-planes.ts";
import { silentLog } from "../kit/log.ts";
import { createForward } from "./forward.ts";
import { createHttpServer, type HttpServer } from "./server.ts";

// Two servers on one database: the primary, and one that forwards requests only the primary can answer.
let primary: TestApi;
let org: TestOrganization;
let server: HttpServer;
let base: string;
let self: { name: string; owner: string; roles: string[]; url: string };
const bodies: string[] = [];

before(async () => {
  primary = await testApi({
    http: {
      mounts: [
        {
          prefix: "/git/",
          async handle(request, response) {
            const chunks: Buffer[] = [];
            for await (const chunk of request) chunks.push(chunk as Buffer);
            bodies.push(`${request.method} ${request.url} ${Buffer.concat(chunks).toString()}`);
            response.writeHead(200, { "x-git": "yes" }).end("pack");
          },
        },
      ],
    },
  });
  org = await testOrganization(primary.database.db, "home");
  const { db } = primary.database;
  const forward = createForward({ db, servesApi: true, log: silentLog });
  server = createHttpServer({ platform: primary.platform, log: silentLog, checks: [], roles: ["api"], forward });
  base = `http://127.0.0.1:${(await server.listen({ host: "127.0.0.1", port: 0 })).port}`;
  self = { name: "primary", owner: "test", roles: ["api", "git"], url: primary.baseUrl };
  await saveControlPlane(db, self);
});
after(async () => {
  await server.close();
  await primary.close();
});

const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

test("what git sends and gets passes through, with and without a length", async () => {
  const chunked = new ReadableStream({
    start: (stream) => {
      stream.enqueue(new TextEncoder().encode("streamed"));
      stream.close();
    },
  });
  const requests = [
    { method: "POST", body: "plain" },
    { method: "POST", body: chunked, duplex: "half" },
    { method: "POST" },
    { method: "GET" },
  ] as const;
  for (const each of requests) {
    const response = await fetch(`${base}/git/home/demo.git/x?y=1`, each as RequestInit);
    assert.deepEqual([response.status, response.headers.get("x-git"), await response.text()], [200, "yes", "pack"]);
  }
  const path = "/git/home/demo.git/x?y=1";
  assert.deepEqual(bodies.splice(0), [`POST ${path} plain`, `POST ${path} streamed`, `POST ${path} `, `GET ${path} `]);
});

test("a row of the primary is answered by it, with its errors; every other row is answered here", async () => {
  const { slug } = await testProject(primary.platform, org);
  const missing = await fetch(`${base}/v1/projects/absent/disk`, as(org.owner));
  assert.equal(missing.status, 404);
  const shown = await fetch(`${base}/v1/projects/${slug}/disk`, as(org.owner));
  assert.equal(shown.status, 200, await shown.text());
  const ready = (await (await fetch(`${base}/readyz`)).json()) as { roles: string[] };
  assert.deepEqual(ready.roles, ["api"]);
});

test("a stream of events begins before its first event, and its end reaches the primary", async () => {
  const { slug } = await testProject(primary.platform, org);
  const leave = new AbortController();
  const response = await fetch(`${base}/v1/projects/${slug}/logs?follow=true`, {
    ...as(org.owner),
    signal: leave.signal,
  });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /text\/event-stream/);
  leave.abort();
});

test("an upgrade that the primary refuses is refused with its words", async () => {
  const socket = connect(Number(new URL(base).port), "127.0.0.1");
  await once(socket, "connect");
  const path = "/v1/projects/absent/database/tunnels/tun_1";
  const fields = ["Connection: Upgrade", "Upgrade: websocket", `Authorization: Bearer ${org.owner}`];
  const protocol = ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="];
  socket.write([`GET ${path} HTTP/1.1`, "Host: localhost", ...fields, ...protocol, "", ""].join("\r\n"));
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await eventually(() => text.includes("not_found"), "the refusal");
  assert.match(text, /^HTTP\/1\.1 404 /);
  socket.destroy();
});

test("what the primary sends with its consent to an upgrade arrives", async () => {
  const { db } = primary.database;
  const peer = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () =>
      socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nfirst words"),
    );
  }).listen(0, "127.0.0.1");
  await once(peer, "listening");
  await saveControlPlane(db, { ...self, url: `http://127.0.0.1:${(peer.address() as AddressInfo).port}` });
  const forward = createForward({ db, servesApi: false, log: silentLog });
  const platform = primary.platform;
  const edge = createHttpServer({ platform, log: silentLog, checks: [], roles: ["edge"], forward });
  const { port } = await edge.listen({ host: "127.0.0.1", port: 0 });
  try {
    const socket = connect(port, "127.0.0.1");
    const fields = ["Connection: Upgrade", "Upgrade: websocket"];
    socket.write(["GET /v1/projects/x/database/tunnels/y HTTP/1.1", "Host: localhost", ...fields, "", ""].join("\r\n"));
    assert.match(await text(socket), /^HTTP\/1\.1 101 [^]*\r\n\r\nfirst words$/);
  } finally {
    await edge.close();
    peer.close();
    await saveControlPlane(db, self);
  }
});

test("a process without the API hands everything to the primary, whatever host the request line names", async () => {
  const forward = createForward({ db: primary.database.db, servesApi: false, log: silentLog });
  const edge = createHttpServer({ platform: primary.platform, log: silentLog, checks: [], roles: ["edge"], forward });
  const elsewhere: (string | undefined)[] = [];
  const other = createServer((request, response) => {
    elsewhere.push(request.url);
    response.end("elsewhere");
  }).listen(0, "127.0.0.1");
  await once(other, "listening");
  const host = `127.0.0.1:${(other.address() as AddressInfo).port}`;
  const { port } = await edge.listen({ host: "127.0.0.1", port: 0 });
  try {
    for (const path of [`//${host}/latest`, `http://${host}/latest`, `http://${host}/v1/me`]) {
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        request({ host: "127.0.0.1", port, path }, resolve).once("error", reject).end();
      });
      assert.notEqual(await text(answer), "elsewhere", path);
      assert.ok((answer.statusCode ?? 0) >= 400, path);
    }
    assert.deepEqual(elsewhere, []);
  } finally {
    await edge.close();
    other.close();
  }
});

test("without a live primary its rows are unavailable, and the others are not", async () => {
  const { db } = primary.database;
  await removeControlPlane(db, self);
  const alone = createForward({ db, servesApi: true, log: silentLog });
  const platform = primary.platform;
  const other = createHttpServer({ platform, log: silentLog, checks: [], forward: alone });
  const url = `http://127.0.0.1:${(await other.listen({ host: "127.0.0.1", port: 0 })).port}`;
  try {
    const refused = await fetch(`${url}/v1/projects/demo/logs`, as(org.owner));
    const { code } = (await refused.json()) as { code: string };
    assert.deepEqual([refused.status, code], [503, "unavailable"]);
    assert.ok(Number(refused.headers.get("retry-after")) > 0);
    assert.equal((await fetch(`${url}/v1/projects`, as(org.owner))).status, 200);
  } finally {
    await other.close();
    await saveControlPlane(db, self);
  }
});
