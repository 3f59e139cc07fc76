import { lookup } from "node:dns/promises";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import type { ServerLogin } from "../adapters/postgres-host-server/primary.ts";
import type { ServerAddress } from "../kit/server-address.ts";
import type { ServerTls } from "../kit/server-tls.ts";
import type { OpenPort } from "../sandbox/veth-rules.ts";
import { setting } from "./settings.ts";

/** Settings for existing PostgreSQL servers: one for the control plane's own database, one for projects' databases. */
export const pgSettings = {
  databaseUrl: setting("BERTH_DATABASE_URL", "", readDatabaseUrl).means(
    "The control plane's own database; when unset, Berth runs one itself.",
  ),
  pgUrl: setting("BERTH_PG_URL", "", (text) => (text === undefined ? null : readPgUrl(text))).means(
    "An existing PostgreSQL server for the projects' databases, as a libpq connection URL, such as `postgresql://berth:secret@10.0.0.7/postgres`; with standbys, all hosts separated by commas. `?sslmode=verify-full&sslrootcert=/etc/berth/pg-ca.pem` secures the connections. The role must be a superuser. When unset, each project gets a server of its own on this machine.",
  ),
};

/** Checks the form of a URL for `pg`, which takes any text as one. The password is in no message. */
function readDatabaseUrl(text: string | undefined): string | null {
  if (text === undefined || /^(?:socket:)?\//.test(text)) return text ?? null;
  // A socket's URL may have a user and no host.
  if (/^postgres(?:ql)?:\/\//.test(text) && (URL.canParse(text) || URL.canParse(text.replace("@/", "@host/"))))
    return text;
  throw new Error("BERTH_DATABASE_URL must be like postgresql://user:password@host:5432/berth.");
}

/** The existing server, and the file of the CA that signed its certificate; null if a public CA did or it is not verified. */
export interface PgServer extends ServerLogin {
  readonly caFile: string | null;
}

const form = /^postgres(?:ql)?:\/\/([^:@/?]+)(?::([^@/?]*))?@([^/?]+)(?:\/([^?]*))?(?:\?(.*))?$/;

/** Parses a libpq URL. Throws one sentence about what is wrong, without any part of the text: a wrong one may have the password anywhere. */
function readPgUrl(text: string): PgServer {
  const [, user = "", password = "", hosts = "", database = "", query = ""] = form.exec(text) ?? [];
  if (hosts === "" || hosts.includes("@") || [user, password, hosts, database].some((part) => !isEncoded(part)))
    throw new Error(
      "BERTH_PG_URL must be like postgresql://user:password@host:5432/postgres, with a user and a host; in a password, @, / and % are written as %40, %2F and %25.",
    );
  const [first, ...others] = hosts.split(",").map(readHost) as [ServerAddress, ...ServerAddress[]];
  const [decodedUser, decodedPassword, decodedDatabase] = [user, password, database].map(decodeURIComponent);
  return {
    ...{ hosts: [first, ...others], user: decodedUser ?? "", password: decodedPassword ?? "" },
    database: decodedDatabase || "postgres",
    ...readTls(new URLSearchParams(query)),
  };
}

function isEncoded(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

const modes: readonly string[] = ["disable", "require", "verify-ca", "verify-full"] satisfies (
  | ServerTls["mode"]
  | "disable"
)[];

function readTls(query: URLSearchParams): Pick<PgServer, "tls" | "caFile"> {
  for (const [name, value] of query)
    if (!["sslmode", "sslrootcert"].includes(name) && `${name}=${value}` !== "target_session_attrs=read-write")
      throw new Error(
        `BERTH_PG_URL: ${/^[a-z_]+$/.test(name) && value !== "" ? name : "what follows the question mark"} is not supported. Supported: sslmode, sslrootcert and target_session_attrs=read-write.`,
      );
  const mode = query.get("sslmode") ?? "disable";
  if (!modes.includes(mode)) throw new Error(`BERTH_PG_URL: sslmode must be ${modes.join(" or ")}.`);
  const caFile = query.get("sslrootcert");
  if (caFile !== null && !mode.startsWith("verify-"))
    throw new Error("BERTH_PG_URL: with sslrootcert, sslmode must be verify-full or verify-ca.");
  const ca = caFile === null ? null : readCertificates(caFile);
  return { caFile, tls: mode === "disable" ? null : { mode: mode as ServerTls["mode"], ca } };
}

function readCertificates(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new Error(`BERTH_PG_URL: the file of sslrootcert cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** Returns the CA file that applications and builds must trust to verify their database's server. */
export function databaseCaOf({ pgUrl }: { readonly pgUrl: PgServer | null }): { databaseCaFile?: string } {
  return pgUrl?.caFile ? { databaseCaFile: pgUrl.caFile } : {};
}

function readHost(text: string): ServerAddress {
  const [, encoded = "", port = "5432"] = /^([^:[\]]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = decodeURIComponent(encoded);
  if (host === "" || Number(port) > 65_535)
    throw new Error(
      "BERTH_PG_URL: a host must be a name, an IPv4 address or the folder of a Unix socket, with or without a port.",
    );
  if (host === "localhost" || (isIP(host) === 4 && host.startsWith("127.")))
    throw new Error(
      `BERTH_PG_URL: applications cannot reach the server at ${host}, because in a sandbox that address is the sandbox itself. Give the folder of the server's Unix socket (%2Fvar%2Frun%2Fpostgresql) or an address that it listens on.`,
    );
  return { host, port: Number(port) };
}

/** Returns the IPv4 addresses and ports of that server. Sandboxes may connect to them even if an address is private or this machine's own. */
export async function pgPortsOf({ pgUrl }: { readonly pgUrl: ServerLogin | null }): Promise<readonly OpenPort[]> {
  const onNetwork = (pgUrl?.hosts ?? []).filter(({ host }) => !host.startsWith("/"));
  const found = await Promise.all(
    onNetwork.map(async ({ host, port }) => {
      const addresses = await lookup(host, { all: true, family: 4 }).catch(() => []);
      return addresses.map(({ address }) => ({ address, port }));
    }),
  );
  return found.flat();
}
