import type { ServerAddress } from "../../kit/server-address.ts";
import type { ServerTls } from "../../kit/server-tls.ts";
import { withConnection, type ServerConnection } from "../../postgres/connection.ts";

/** Login of the platform at an existing server: a primary and possibly standbys. Contains a password. */
export interface ServerLogin {
  /** All servers of one cluster; any of them may be the primary. */
  readonly hosts: readonly [ServerAddress, ...ServerAddress[]];
  /** Must be a superuser. */
  readonly user: string;
  readonly password: string;
  /** The database that the platform connects to first, such as `postgres`. */
  readonly database: string;
  /** Null for connections without TLS. */
  readonly tls: ServerTls | null;
}

/** Finds the server that accepts writes by probing all servers. Never promotes one. */
export type Primary = ReturnType<typeof followPrimary>;

interface Seen {
  readonly at: ServerAddress;
  readonly accepts_writes: boolean;
  readonly is_superuser: boolean;
  readonly version: number;
  readonly system: string;
  /** Increases with each promotion; null on a standby. */
  readonly timeline: string | null;
  readonly open_databases: readonly string[];
}

interface Fault {
  readonly at: ServerAddress;
  readonly fault: string;
}

const freshMs = 4000;
// Applies when there are several servers. A single server has no alternative and may be overloaded, so it gets the default timeouts.
const probeTimeoutMs = 5000;

const probeQuery = `
  SELECT current_setting('transaction_read_only') = 'off' AS accepts_writes,
    (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS is_superuser,
    current_setting('server_version_num')::int AS version,
    (SELECT system_identifier::text FROM pg_control_system()) AS system,
    CASE WHEN pg_is_in_recovery() THEN NULL ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline,
    ARRAY(SELECT datname::text FROM pg_database WHERE datallowconn AND datname NOT IN ('postgres', 'template1')
      AND has_database_privilege('public', oid, 'CONNECT')) AS open_databases`;

export function followPrimary(login: ServerLogin) {
  let known: Seen | undefined;
  let seenAt = -Infinity;
  let looking: Promise<Seen> | undefined;

  async function look(): Promise<Seen> {
    try {
      const answers = await Promise.all(login.hosts.map((at) => probe(login, at)));
      known = choosePrimary(answers, known?.at);
      return known;
    } catch (error) {
      known = undefined;
      throw error;
    } finally {
      seenAt = performance.now();
      looking = undefined;
    }
  }
  const lookOnce = () => (looking ??= look());
  const refresh = () => {
    if (performance.now() - seenAt >= freshMs) lookOnce().catch(() => {});
  };
  return {
    /** Rejects with a message for the operator if no server accepts writes. */
    async find() {
      // Waits for a probe only if no primary is known; otherwise a standby that is down for days would delay every call.
      refresh();
      return (known ?? (await lookOnce())).at;
    },
    /** Returns the server that accepted writes at the last probe, if any. Probes again in the background when that is older than 4 s. */
    lastSeen() {
      refresh();
      return known?.at;
    },
    /** Databases on the cluster that every role may connect to, as of the last probe. */
    openDatabases: () => known?.open_databases ?? [],
    connection: (at: ServerAddress, database?: string) => connectionTo(login, at, database),
  };
}

/** Chooses the server that accepts writes. Of two, the newer timeline wins: the other is an old primary that kept running or returned. */
function choosePrimary(answers: readonly (Seen | Fault)[], last: ServerAddress | undefined): Seen {
  const seen = answers.filter((answer): answer is Seen => !("fault" in answer));
  const systems = new Set(seen.map(({ system }) => system));
  if (systems.size > 1)
    throw new Error(`the servers of BERTH_PG_URL are not one cluster: ${seen.map(({ at }) => nameOf(at)).join(", ")}`);
  const [first, ...others] = seen.filter(({ accepts_writes }) => accepts_writes);
  if (first === undefined)
    throw new Error(`no server of BERTH_PG_URL accepts writes: ${answers.map(whyNot).join("; ")}`);
  const chosen = others.reduce((best, each) => {
    const [a, b] = [each.timeline ?? "", best.timeline ?? ""];
    return a > b || (a === b && each.at === last) ? each : best;
  }, first);
  requireRights(chosen);
  return chosen;
}

function requireRights({ at, version, is_superuser }: Seen): void {
  if (version < 150_000) throw new Error(`${nameOf(at)} is older than PostgreSQL 15, which Berth needs`);
  if (!is_superuser)
    throw new Error(`the role of BERTH_PG_URL is not a superuser at ${nameOf(at)}, but Berth needs one`);
}

async function probe(login: ServerLogin, at: ServerAddress): Promise<Seen | Fault> {
  const timeouts = login.hosts.length === 1 ? {} : { connectMs: probeTimeoutMs, queryMs: probeTimeoutMs };
  try {
    return await withConnection(
      connectionTo(login, at),
      async (client) => {
        const { rows } = await client.query<Omit<Seen, "at">>(probeQuery);
        return { at, ...(rows[0] as Omit<Seen, "at">) };
      },
      timeouts,
    );
  } catch (error) {
    return { at, fault: (error as Error).message || (error as NodeJS.ErrnoException).code || "no answer" };
  }
}

function connectionTo(
  { user, password, database, tls }: ServerLogin,
  { host, port }: ServerAddress,
  other?: string,
): ServerConnection {
  return { host, port, user, password, database: other ?? database, tls };
}

function whyNot(answer: Seen | Fault): string {
  return `${nameOf(answer.at)}: ${"fault" in answer ? answer.fault : "it is a standby, or read-only"}`;
}

const nameOf = ({ host, port }: ServerAddress): string => `${host}:${port}`;
