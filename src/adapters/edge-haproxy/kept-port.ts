import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { keptText } from "../../kit/whole-file.ts";

/** Returns a free port, chosen once per state folder. */
export async function keptPort(stateDir: string, name: string, host: string): Promise<number> {
  const free = await freePort(host);
  return Number(keptText(join(stateDir, name), () => `${free}`));
}

// Between the ports of databases and those of outgoing connections, one of which could have the port whenever HAProxy starts again.
const [firstPort, portCount] = [31_000, 1768];

async function freePort(host: string): Promise<number> {
  const port = firstPort + randomInt(portCount);
  const server = createServer().listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return freePort(host);
    throw error;
  }
  await new Promise((resolve) => server.close(resolve));
  return port;
}
