import { createServer } from "node:net";
import { hasHttps } from "./certificate-settings.ts";
import type { Config } from "./config.ts";
import { StartRefused } from "./start-refused.ts";

/**
 * Throws `StartRefused`, before anything is changed, if another program uses one of the ports. The edge of an earlier start may keep its
 * own (`edgeListens`).
 */
export async function requireFreePorts(config: Config, edgeListens: boolean): Promise<void> {
  const opensEdge = config.roles.includes("edge") && !edgeListens;
  const wanted = [
    { port: config.httpPort, name: "BERTH_HTTP_PORT" },
    { port: config.roles.includes("git") ? config.sshPort : 0, name: "BERTH_SSH_PORT" },
    { port: opensEdge ? config.edgePort : 0, name: "BERTH_EDGE_PORT" },
    { port: opensEdge && hasHttps(config) ? config.edgeTlsPort : 0, name: "BERTH_EDGE_TLS_PORT" },
  ];
  for (const { port, name } of wanted) {
    const trouble = port === 0 ? undefined : await tryPort(config.listen, port);
    if (trouble === "EADDRINUSE")
      throw new StartRefused(
        `Port ${port} on ${config.listen} is in use by another program. Stop it, or set ${name} to another port.`,
      );
    if (trouble === "EACCES")
      throw new StartRefused(`This user may not open port ${port}. Set ${name} to a port above 1023.`);
    if (trouble === "EADDRNOTAVAIL")
      throw new StartRefused(
        `This machine has no address ${config.listen}. Set BERTH_LISTEN to an address of this machine.`,
      );
  }
}

/** Returns the code of the error that listening on the port causes, or undefined. */
export function tryPort(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}
