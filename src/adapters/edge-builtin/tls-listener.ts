import type { Server as HttpServer } from "node:http";
import type { Socket } from "node:net";
import { createServer, type Server, type TLSSocket } from "node:tls";
import type { LiveCertificates } from "./live-certificates.ts";

const handshakeTimeoutMs = 10_000;

/**
 * Accepts TLS connections and passes the decrypted ones to the HTTP server, whose limits then apply. HTTP/1.1 only: the exchange writes to
 * Node's HTTP/1.1 response, which its HTTP/2 server only imitates.
 */
export function createTlsListener(http: HttpServer, certificates: LiveCertificates): Server {
  const server = createServer({
    SNICallback: (name, done) => done(null, certificates.find(name)),
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    handshakeTimeout: handshakeTimeoutMs,
    noDelay: true,
  });
  server.maxConnections = http.maxConnections;
  server.on("secureConnection", (socket: TLSSocket) => void http.emit("connection", socket));
  return server;
}

/** Returns whether a client's connection is encrypted. */
export function isEncrypted(socket: Socket): boolean {
  return (socket as TLSSocket).encrypted === true;
}
