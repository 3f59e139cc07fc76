/** Where a PostgreSQL server listens, in libpq's words: `host` is a name, an address, or the absolute path of the folder that holds its Unix socket. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** A Unix socket, and the TCP port of 127.0.0.1 under which an application finds what listens there. */
export interface ForwardedSocket {
  readonly port: number;
  readonly socket_path: string;
}

/** The server's Unix socket, as PostgreSQL names it in `unix_socket_directories`; null where it listens on TCP alone. */
export function unixSocketOf({ host, port }: ServerAddress): string | null {
  return host.startsWith("/") ? `${host}/.s.PGSQL.${port}` : null;
}

/** Which sockets a sandbox forwards for these servers: those on TCP need none. */
export function forwardedSockets(servers: readonly ServerAddress[]): ForwardedSocket[] {
  return servers.flatMap((server) => {
    const socket_path = unixSocketOf(server);
    return socket_path === null ? [] : [{ port: server.port, socket_path }];
  });
}

/** Where an application finds the server when its sandbox forwards Unix sockets to 127.0.0.1:<port>. */
export function forwardedAddress(server: ServerAddress): ServerAddress {
  return unixSocketOf(server) === null ? server : { host: "127.0.0.1", port: server.port };
}
