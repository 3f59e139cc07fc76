import assert from "node:assert/strict";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { after, before, test } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { makeCertificate, route, say, startLoad, text, type Stage } from "./edge-stage.suite.ts";
import type { CertificateTable, EdgeCertificate, RouteHttps, Target } from "./edge.ts";

/** A part of the edge's suite: TLS, redirects and challenges. Leaves a certificate for `*.test` active. */
export function encryption(stage: Stage): void {
  let [wide, exact]: EdgeCertificate[] = [];
  let version = 100;
  before(async () => {
    [wide, exact] = await Promise.all([makeCertificate(["*.test"]), makeCertificate(["exact.test", "bare.example"])]);
  });
  const apply = async (certificates: readonly (EdgeCertificate | undefined)[]): Promise<CertificateTable> => {
    const table = { version: (version += 1), certificates: certificates.filter((each) => each !== undefined) };
    await (await stage.edge()).applyCertificates(table);
    return table;
  };
  const open: TLSSocket[] = [];
  after(() => open.forEach((socket) => socket.destroy()));

  async function handshake(servername: string): Promise<TLSSocket> {
    const socket = connect({ ...(await stage.address()), servername, rejectUnauthorized: false });
    open.push(socket);
    await once(socket, "secureConnect");
    return socket;
  }
  const subjectOf = async (servername: string) => (await handshake(servername)).getPeerCertificate().subject.CN;

  /** Sends a request over plain HTTP. */
  async function plainly(host: string, path: string, method = "GET", fields = {}): Promise<IncomingMessage> {
    const listen = (await (await stage.edge()).observe()).listen as string;
    const at = listen.lastIndexOf(":");
    const where = {
      host: listen.slice(0, at),
      port: Number(listen.slice(at + 1)),
      agent: false,
      headers: { host, ...fields },
    };
    const asking = request({ ...where, path, method });
    asking.end();
    return ((await once(asking, "response")) as [IncomingMessage])[0];
  }

  const serve = async (host: string, https: RouteHttps, target: Target, hsts = false) =>
    stage.serveRoutes([{ ...route(host, [target]), https, hsts }]);

  test("the server name chooses the certificate, an exact one before a wildcard, whatever its case", async () => {
    await stage.serve({});
    await apply([wide, exact]);
    assert.deepEqual(
      [await subjectOf("exact.test"), await subjectOf("EXACT.test"), await subjectOf("any.test")],
      ["exact.test", "exact.test", "*.test"],
    );
    assert.equal(await subjectOf("bare.example"), "exact.test");
  });

  test("a server name without a certificate gets no connection: no other name's certificate is shown", async () => {
    await apply([wide, exact]);
    for (const name of ["else.example", "deep.below.test", "example"]) await assert.rejects(handshake(name), name);
  });

  test("new connections get a replaced certificate, open ones go on, and older tables are ignored", async () => {
    await stage.serve({ "exact.test": [await stage.app(say("served"))] });
    const before = await apply([wide, exact]);
    const socket = await handshake("exact.test");
    const renewed = await makeCertificate(["exact.test"]);
    const { version: now } = await apply([wide, renewed]);
    await (await stage.edge()).applyCertificates(before);
    assert.equal((await (await stage.edge()).observe()).certificate_version, now);
    const serial = async () => (await handshake("exact.test")).getPeerX509Certificate()?.toString();
    assert.equal(await serial(), renewed.chain_pem);
    socket.write("GET / HTTP/1.1\r\nHost: exact.test\r\nConnection: close\r\n\r\n");
    assert.match(await text(socket as never), /^HTTP\/1\.1 200 [\s\S]*served$/);
  });

  test("no request fails while certificates are replaced under load, on kept and on new connections", async () => {
    await stage.serve({ "exact.test": [await stage.app(say("served"))] });
    const loads = [
      startLoad(stage, "exact.test"),
      startLoad(stage, "exact.test", { connections: 2, keepAlive: false }),
    ];
    for (let i = 0; i < 10; i += 1) {
      await apply([wide, i % 2 ? exact : undefined]);
      await Promise.all(loads.map((load) => load.passed(4)));
    }
    for (const load of loads) assert.deepEqual((await load.stop()).failures, []);
  });

  test("a certificate that cannot be read costs no other name its own", async () => {
    await apply([wide, { names: ["broken.example"], chain_pem: "not a certificate", key_pem: "nor a key" }]);
    await assert.rejects(handshake("broken.example"));
    assert.equal(await subjectOf("any.test"), "*.test");
  });

  test("a route that asks for it leads plain requests to HTTPS with the same path, whatever the method", async () => {
    await serve("go.test", "redirect", await stage.app(say("secret")));
    const { port } = await stage.address();
    for (const method of ["GET", "POST", "HEAD"]) {
      const answer = await plainly("go.test", "/a//b?c=%20", method);
      assert.equal(answer.statusCode, 308);
      assert.equal(answer.headers.location, `https://go.test:${port}/a//b?c=%20`);
    }
    assert.equal((await stage.ask({ host: "go.test" })).body, "secret");
    const own = (await (await stage.edge()).entrance())?.headers;
    assert.equal(await text(await plainly("go.test", "/", "GET", own)), "secret", "the platform's own probe");
  });

  test("without a redirect both are served; a route without HTTPS is an unknown host there", async () => {
    const app = await stage.app(say("both"));
    await serve("both.test", "on", app);
    assert.equal((await stage.ask({ host: "both.test" })).body, "both");
    assert.equal(await text(await plainly("both.test", "/")), "both");
    await serve("both.test", "off", app);
    assert.equal((await stage.ask({ host: "both.test" })).status, 404);
    assert.equal(await text(await plainly("both.test", "/")), "both");
  });

  test("HSTS is added over HTTPS alone, and the application's own field wins", async () => {
    const app = await stage.app((req, res) => {
      if (req.url === "/own") res.setHeader("Strict-Transport-Security", "max-age=5");
      res.end("ok");
    });
    await serve("hsts.test", "on", app, true);
    const field = async (path: string) =>
      (await stage.ask({ host: "hsts.test", path })).headers["strict-transport-security"];
    assert.deepEqual([await field("/"), await field("/own")], ["max-age=31536000", "max-age=5"]);
    assert.equal((await plainly("hsts.test", "/")).headers["strict-transport-security"], undefined);
  });

  test("plain challenges of any host reach the control plane, whatever its route says", async () => {
    const [app, control] = [
      await stage.app(say("app")),
      await stage.app((req, res) => res.end(`${req.headers.host} ${req.url}`)),
    ];
    await stage.serveRoutes([{ ...route("go.test", [app]), https: "redirect" }], control);
    const path = "/.well-known/acme-challenge/token";
    for (const host of ["go.test", "unknown.example"])
      assert.equal(await text(await plainly(host, path)), `${host} ${path}`);
    assert.equal((await plainly("go.test", "/.well-known/other")).statusCode, 308);
  });
}
