import { createServer, type AddressInfo } from "node:net";

/** A port that is free now, outside of the ranges for outgoing connections, databases and sandboxes. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 5000);
    const isFree = await new Promise<boolean>((resolve) => {
      const server = createServer();
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => {
        const { port: taken } = server.address() as AddressInfo;
        server.close(() => resolve(taken === port));
      });
    });
    if (isFree) return port;
  }
}
