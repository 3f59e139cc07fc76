/** Where a PostgreSQL server listens, as for libpq: `host` is a name, an address, or the absolute path of its Unix socket's folder. */
export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** A Unix socket and the TCP port of 127.0.0.1 that a sandbox forwards to it. */
export interface ForwardedSocket {
  readonly port: number;
  readonly socket_path: string;
}

/** Returns the path of the server's Unix socket, as PostgreSQL names it in `unix_socket_directories`; null when it listens only on TCP. */
export function unixSocketOf({ host, port }: ServerAddress): string | null {
  return host.startsWith("/") ? `${host}/.s.PGSQL.${port}` : null;
}

/** Returns the sockets that a sandbox must forward for these servers; servers on TCP need none. */
export function forwardedSockets(servers: readonly ServerAddress[]): ForwardedSocket[] {
  return servers.flatMap((server) => {
    const socket_path = unixSocketOf(server);
    return socket_path === null ? [] : [{ port: server.port, socket_path }];
  });
}

/** Returns the address that an application uses when its sandbox forwards Unix sockets to 127.0.0.1:<port>. */
export function forwardedAddress(server: ServerAddress): ServerAddress {
  return unixSocketOf(server) === null ? server : { host: "127.0.0.1", port: server.port };
}
