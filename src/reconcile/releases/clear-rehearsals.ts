import { abandonedRehearsals, noteCleared } from "../../features/rehearsals/rehearsals.ts";
import type { Platform } from "../platform.ts";

interface Held {
  /** The deployment's. */
  readonly id: string;
  readonly org_id: string;
  readonly project_number: number;
  readonly database_id: string;
}

/** Removes what a rehearsal copied. Idempotent; what fails is tried again once the deployment has ended. */
export async function clearRehearsal(platform: Platform, held: Held): Promise<void> {
  const { db, ports, log } = platform;
  try {
    await ports.postgresHost.history(held.database_id)?.discardClone(held.database_id);
    await ports.runtime.removeStorage(copiedFiles(held));
    await noteCleared(db, held);
  } catch (error) {
    log.warn({ err: error, deployment: held.id }, "the copy of a rehearsal could not be removed yet");
  }
}

/** Removes the copies that a killed control plane left. */
export async function clearAbandoned(platform: Platform): Promise<void> {
  for (const held of await abandonedRehearsals(platform.db)) await clearRehearsal(platform, held);
}

/** Returns whose storage folder the copy of the files is. */
export function copiedFiles({ id, project_number }: Pick<Held, "id" | "project_number">) {
  return { project_id: `rehearsal-${id}`, project_number };
}
