import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";

/** Browsers and clients open connections in advance, which Node.js does not count as idle: a stop would wait for them. */
export function watchUnused(server: Server): () => void {
  const unused = new Set<Socket>();
  server.on("connection", (socket) => {
    unused.add(socket);
    socket.once("close", () => unused.delete(socket));
  });
  for (const event of ["request", "upgrade"]) server.on(event, ({ socket }: IncomingMessage) => unused.delete(socket));
  return () => unused.forEach((socket) => socket.destroy());
}
