import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";

/** Tracks connections without a request, and returns a function that closes them: Node.js does not count them as idle at a stop. */
export function watchUnused(server: Server): () => void {
  const unused = new Set<Socket>();
  server.on("connection", (socket) => {
    unused.add(socket);
    socket.once("close", () => unused.delete(socket));
  });
  for (const event of ["request", "upgrade"]) server.on(event, ({ socket }: IncomingMessage) => unused.delete(socket));
  return () => unused.forEach((socket) => socket.destroy());
}
