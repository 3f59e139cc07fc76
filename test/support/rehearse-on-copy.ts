import type { createLocalPostgresHost } from "../../src/adapters/postgres-host-local/local-postgres-host.ts";
import { rehearsalLines, type RehearsalReport } from "../../src/contract/rehearsal.ts";
import { reportOf } from "../../src/features/rehearsals/rehearsals.ts";
import type { ServerAddress } from "../../src/kit/server-address.ts";
import type { DatabaseSpec } from "../../src/ports/postgres-host.ts";

const { signal } = new AbortController();
const password = "of-the-copy";

/** How the project's role reaches a copy. */
export type OfCopy = ServerAddress & { readonly password: string };

/** Changes a copy of an instance, and reports what it did as a rehearsal does. The copy is discarded. */
export async function rehearseOnCopy(
  host: ReturnType<typeof createLocalPostgresHost>,
  spec: DatabaseSpec,
  change: (copy: OfCopy) => Promise<void>,
): Promise<{ readonly failure: unknown; readonly report: RehearsalReport; readonly told: readonly string[] }> {
  const history = host.history(spec.id);
  if (history === null) throw new Error("the host makes no copies");
  const copy = await history.clone(spec, { mayCopy: true, password, signal });
  try {
    const before = await copy.tables(spec.database_name, signal);
    const watch = await copy.watch(spec.database_name);
    const failure: unknown = await change({ ...copy.server, password }).catch((error: unknown) => error);
    const locks = await watch.end();
    const after = await copy.tables(spec.database_name, signal);
    const report = reportOf({ before, after, locks, seconds: 1, exit_code: failure === undefined ? 0 : 1 });
    const told = rehearsalLines(report).filter((line) => !briefly.test(line));
    return { failure, report, told: told.toSorted() };
  } finally {
    await history.discardClone(spec.id);
  }
}

/** A table that was locked more shortly than a sample takes may be named or not. */
const briefly = / locked for less than 0\.1 s$/;
