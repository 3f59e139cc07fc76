import { existsSync } from "node:fs";
import { StartRefused } from "./start-refused.ts";

/** Throws `StartRefused` if the Docker engine's socket does not exist. */
export function requireEngineSocket(dockerSocket: string): void {
  if (existsSync(dockerSocket)) return;
  throw new StartRefused(
    `BERTH_RUNTIME=docker: no Docker engine listens on ${dockerSocket}. Start the engine, or name its socket in BERTH_DOCKER_SOCKET.`,
  );
}
