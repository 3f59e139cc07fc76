import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, get, type IncomingMessage, type Server } from "node:http";
import { connect } from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { after, before, describe, test } from "node:test";
import { makeCertificate, route } from "../../ports/edge-stage.suite.ts";
import { certificateFiles, type CertificateFile } from "./certificates.ts";
import { createHaproxyEdge, type HaproxyEdge } from "./haproxy-edge.ts";
import { runFolder } from "../../kit/run-folder.ts";
import { callHaproxy } from "./runtime-socket.ts";
import { testOptions, withoutHaproxy } from "../../../test/support/haproxy.ts";

describe("HAProxy alone", { skip: withoutHaproxy }, () => {
  let app: Server;
  let edge: HaproxyEdge;
  let stateDir: string;
  let ports: { readonly plain: number; readonly tls: number };

  before(async () => {
    stateDir = await mkdtemp(join(tmpdir(), "berth-haproxy-"));
    app = createServer((request, response) => response.end(JSON.stringify(request.headers)));
    await once(app.listen(0, "127.0.0.1"), "listening");
    edge = createHaproxyEdge({ ...testOptions, stateDir, trustedProxies: ["127.0.0.1/32"] });
    await edge.applyCertificates({ version: 1, certificates: [await makeCertificate(["app.test"])] });
    const target = { host: "127.0.0.1", port: (app.address() as AddressInfo).port };
    const redirected = { ...route("app.test", [target]), https: "redirect" } as const;
    await edge.apply({ version: 1, routes: [redirected], challenge: null });
    const { listen, listen_tls } = await edge.observe();
    const portOf = (address: string | null) => Number(address?.split(":").at(-1));
    ports = { plain: portOf(listen), tls: portOf(listen_tls) };
  });
  after(async () => {
    await edge.stop(0);
    app.close();
    await rm(stateDir, { recursive: true, force: true });
  });

  test("a client that speaks HTTP/2 has many requests answered over one connection", async () => {
    const session = connect(`https://127.0.0.1:${ports.tls}`, { servername: "app.test", rejectUnauthorized: false });
    const asked = Array.from({ length: 20 }, async (_, index) => {
      const stream = session.request({ ":authority": "app.test", ":path": "/", "x-number": `${index}` });
      let body = "";
      stream.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
      const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
      await once(stream, "end");
      return [headers[":status"], (JSON.parse(body) as Record<string, string>)["x-number"]];
    });
    const expected = Array.from({ length: 20 }, (_, index) => [200, `${index}`]);
    assert.deepEqual(await Promise.all(asked), expected);
    assert.equal(session.alpnProtocol, "h2");
    session.close();
  });

  test("a trusted proxy says who the client is and that it came over HTTPS", async () => {
    const claims = { "x-forwarded-for": "6.6.6.6, 203.0.113.9", "x-forwarded-proto": "https" };
    const { status, headers } = await ask(claims);
    assert.equal(status, 200, "no redirect to where the client is already");
    const { "x-forwarded-for": client, "x-real-ip": real, "x-forwarded-proto": proto } = headers;
    assert.deepEqual([client, real, proto], ["203.0.113.9", "203.0.113.9", "https"]);
    assert.equal((await ask({ ...claims, "x-forwarded-proto": "http" })).status, 308);
    assert.equal((await ask({})).status, 308);
  });

  test("a request's head of 15 KiB passes, and a larger one is refused", async () => {
    const claims = { "x-forwarded-proto": "https" };
    assert.equal((await ask({ ...claims, "x-large": "x".repeat(14_500) })).status, 200);
    assert.equal((await ask({ ...claims, "x-large": "x".repeat(20_000) })).status, 400);
  });

  test("certificates whose load was interrupted are served by the next one", async () => {
    const socket = join(runFolder(stateDir), "haproxy", "admin.sock");
    const certificates = await Promise.all(
      ["app.test", "new.test", "gone.test"].map((name) => makeCertificate([name])),
    );
    const [kept, added, gone] = certificateFiles({ version: 2, certificates }).files.map(({ name }) => name);
    for (const name of [kept, added, gone]) await callHaproxy(socket, `new ssl cert ${name}`);
    const [, { pem }] = certificateFiles({ version: 2, certificates }).files as [CertificateFile, CertificateFile];
    await callHaproxy(socket, `set ssl cert ${added} <<\n${pem}`);
    await edge.applyCertificates({ version: 2, certificates: certificates.slice(0, 2) });
    const names = await Promise.all(["app.test", "new.test"].map((name) => subjectOf(ports.tls, name)));
    assert.deepEqual(names, ["app.test", "new.test"]);
    assert.doesNotMatch(await callHaproxy(socket, "show ssl cert"), new RegExp(`${gone}|transaction`));
  });

  test("without HTTPS, certificates wait for it, and routes are served", async () => {
    const options = { ...testOptions, listenTlsPort: null };
    const dir = await mkdtemp(join(tmpdir(), "berth-haproxy-"));
    const plain = createHaproxyEdge({ ...options, stateDir: dir });
    const table = (version: number) => ({ version, routes: [route("app.test", [])], challenge: null });
    try {
      await plain.apply(table(1));
      await plain.applyCertificates({ version: 1, certificates: [await makeCertificate(["app.test"])] });
      await plain.apply(table(2));
      const { route_version, certificate_version } = await plain.observe();
      assert.deepEqual([route_version, certificate_version], [2, 1]);
    } finally {
      await plain.stop(0);
      await rm(dir, { recursive: true, force: true });
    }
  });

  test("a route that names no replica reaches none: not the edge itself, nor another program of this machine", async () => {
    const socket = join(runFolder(stateDir), "haproxy", "admin.sock");
    const setRoute = (value: string) => callHaproxy(socket, `set map hosts.map app.test ${value}`);
    const { port } = app.address() as AddressInfo;
    for (const place of ["", "/", `/${port}`, `nonsense/${port}`, "//"]) {
      await setRoute(`S---/prj_lost/${place}`);
      assert.equal((await ask({})).status, 502, place);
    }
    await setRoute(`S---/prj_lost/127.0.0.1/${port}`);
    assert.equal((await ask({})).status, 200);
  });

  async function ask(headers: Record<string, string>) {
    const asking = get({
      host: "127.0.0.1",
      port: ports.plain,
      headers: { host: "app.test", ...headers },
      agent: false,
    });
    const [response] = (await once(asking, "response")) as [IncomingMessage];
    let body = "";
    for await (const chunk of response) body += String(chunk);
    const seen = response.statusCode === 200 ? (JSON.parse(body) as Record<string, string>) : {};
    return { status: response.statusCode, headers: seen };
  }
});

async function subjectOf(port: number, servername: string): Promise<unknown> {
  const socket = connectTls({ host: "127.0.0.1", port, servername, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return subject.CN;
}
