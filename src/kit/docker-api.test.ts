import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { test } from "node:test";
import { openDockerApi } from "./docker-api.ts";
import { runOk } from "./exec.ts";

test("each call to another machine's engine opens a connection, and resumes the TLS session of the first", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "berth-docker-api-"));
  t.after(() => rm(dir, { recursive: true }));
  const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const files = ["-keyout", join(dir, "key"), "-out", join(dir, "cert"), "-subj", "/CN=engine"];
  await runOk({ file: "openssl", args: [...args, ...files, "-addext", "subjectAltName=IP:127.0.0.1"] });
  const [key, cert] = await Promise.all([readFile(join(dir, "key")), readFile(join(dir, "cert"))]);
  const ports: (number | undefined)[] = [];
  const server = createServer({ key, cert, ca: cert, requestCert: true }, ({ socket }, response) => {
    ports.push(socket.remotePort);
    response.end(JSON.stringify((socket as TLSSocket).isSessionReused()));
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const engine = openDockerApi({ host: "127.0.0.1", port, ca: cert, cert, key });
  const reused = [await engine.call({ path: "/nodes" }), await engine.call({ path: "/nodes" })];
  assert.deepEqual(reused, [false, true]);
  assert.equal(new Set(ports).size, 2);
});
