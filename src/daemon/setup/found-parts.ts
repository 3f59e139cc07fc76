/** The absolute paths of the programs that Berth uses on this machine; null if one is missing. */
export interface FoundParts {
  /** The folder with `initdb`, `postgres` and `pg_ctl`. */
  readonly postgresBin: string | null;
  readonly postgresMajor: number | null;
  readonly pgDump: string | null;
  readonly pgRestore: string | null;
  readonly bwrap: string | null;
  readonly git: string | null;
  readonly setpriv: string | null;
  /** HAProxy 2.6 or later. */
  readonly haproxy: string | null;
  readonly nft: string | null;
  readonly ip: string | null;
  readonly pasta: string | null;
  readonly socat: string | null;
  readonly python: string | null;
  readonly go: string | null;
  readonly npm: string | null;
  /** False if the databases run elsewhere, so that this machine needs no PostgreSQL. */
  readonly wantsPostgres: boolean;
  /** False if this process carries no traffic to applications. */
  readonly wantsHaproxy: boolean;
}
