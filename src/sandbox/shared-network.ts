import { createServer } from "node:net";
import type { Leases } from "./leases.ts";
import type { NetworkDriver } from "./network.ts";

/** Creates the driver of last resort: the host's own network, without isolation. Each serving sandbox gets a free host port. */
export function sharedNetwork(ports: Leases): NetworkDriver {
  return {
    mode: "shared",
    closesMetadata: false,
    async open(id, network) {
      const base = { prefix: [], isolate: false, ownLoopback: false };
      if (network.kind !== "serve") return { ...base, serve: null };
      const port = await ports.claim(id, isFreePort);
      return { ...base, serve: { port, address: { host: "127.0.0.1", port } } };
    },
    async close(id) {
      for (const port of ports.held(id)) ports.release(port);
    },
    ids: () => ports.owners(),
    dismantle: async () => {},
  };
}

/** Resolves to whether a server could listen on the port now, on every address. */
export function isFreePort(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, () => server.close(() => resolve(true)));
  });
}
