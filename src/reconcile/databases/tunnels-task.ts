import {
  awaken,
  databaseOf,
  deadTunnels,
  deleteOldTunnels,
  markTunnelClosed,
  specOf,
} from "../../features/database/database.ts";
import type { Task, Platform } from "../platform.ts";

const periodMs = 10_000;

/** Removes what tunnels of a dead control plane have left: their roles, and half-imported databases. */
export function tunnelsTask(platform: Platform): Task {
  const { db, log } = platform;
  return {
    name: "tunnels",
    periodMs,
    topics: [],
    async run() {
      const dead = await deadTunnels(db);
      for (const tunnel of dead)
        await clear(platform, tunnel).catch((error: unknown) =>
          log.warn({ tunnel: tunnel.id, error: String(error) }, "a dead tunnel's role could not be dropped yet"),
        );
      await deleteOldTunnels(db);
      return { detail: `${dead.length} dead tunnels` };
    },
  };
}

type Dead = Awaited<ReturnType<typeof deadTunnels>>[number];

async function clear(platform: Platform, tunnel: Dead): Promise<void> {
  const { db, vault, ports } = platform;
  const row = await awaken(platform, await databaseOf(db, tunnel.org_id, tunnel.project_id, tunnel.branch));
  if (row !== undefined && tunnel.status === "open") {
    const spec = specOf(vault, row);
    if (tunnel.role_name !== null) await ports.postgresHost.dropSessionRole(spec, tunnel.role_name);
    if (tunnel.purpose === "import" && tunnel.database_name !== null && tunnel.database_name !== spec.database_name)
      await ports.postgresHost.dropDatabase(spec, tunnel.database_name);
  }
  await markTunnelClosed(
    db,
    tunnel.id,
    tunnel.status === "waiting" ? "The tunnel was not opened in time." : "The platform stopped.",
  );
}
