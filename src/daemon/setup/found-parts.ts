/** The absolute paths of what Berth uses of this machine; null means that it isn't there. */
export interface FoundParts {
  /** The folder with `initdb`, `postgres` and `pg_ctl`. */
  readonly postgresBin: string | null;
  readonly postgresMajor: number | null;
  readonly pgDump: string | null;
  readonly pgRestore: string | null;
  readonly bwrap: string | null;
  readonly git: string | null;
  readonly setpriv: string | null;
  /** Version 2.6 or later carries the traffic, where it is installed. */
  readonly haproxy: string | null;
  readonly nft: string | null;
  readonly ip: string | null;
  readonly pasta: string | null;
  readonly socat: string | null;
  readonly python: string | null;
  readonly go: string | null;
  readonly npm: string | null;
  /** False when the databases run elsewhere, and PostgreSQL is not needed here. */
  readonly wantsPostgres: boolean;
}
