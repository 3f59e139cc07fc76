import { createServer, type AddressInfo, type Socket } from "node:net";
import ssh2, { type Connection } from "ssh2";
import { addressKey } from "../kit/address-key.ts";
import type { GitHost } from "./git-process.ts";
import { authenticate, type SshIdentity } from "./authenticate.ts";
import { serveSshSession } from "./ssh-session.ts";

const keepaliveIntervalMs = 15_000;
const keepaliveCountMax = 4;

/** Creates an SSH server that accepts only public keys and git's two services. `hostKey` is a private key in OpenSSH's format. */
export function createSshServer(host: GitHost, hostKey: string) {
  const sockets = new Map<string, Visitor>();
  const config = { hostKeys: [hostKey], ident: "Berth", keepaliveInterval: keepaliveIntervalMs, keepaliveCountMax };
  const ssh = new ssh2.Server(config, (client: Connection, info: { ip: string; port: number }) => {
    const visitor = sockets.get(`${info.ip} ${info.port}`);
    if (visitor) acceptVisitor(host, client, visitor);
    else client.end();
  });
  const server = createServer((socket) => acceptSocket(host, { sockets, ssh }, socket));
  return {
    listen: async ({ host: address, port }: { host: string; port: number }) => {
      await new Promise<void>((done, fail) => server.once("error", fail).listen(port, address, done));
      return (server.address() as AddressInfo).port;
    },
    /** Accepts no more connections. */
    stopListening: () => void server.close(),
    destroy: () => {
      for (const { socket } of sockets.values()) socket.destroy();
    },
  };
}

/** One TCP connection, and whether it has authenticated. */
interface Visitor {
  readonly socket: Socket;
  readonly address: string;
  identity: SshIdentity | null;
}

interface Reception {
  readonly sockets: Map<string, Visitor>;
  readonly ssh: ssh2.Server;
}

// Berth accepts the sockets instead of ssh2, so that it can disconnect a peer that never sends anything.
function acceptSocket({ limits }: GitHost, { sockets, ssh }: Reception, socket: Socket): void {
  const address = addressKey(socket.remoteAddress ?? "");
  const strangers = [...sockets.values()].filter((each) => each.identity === null);
  const fromThere = strangers.filter((each) => each.address === address);
  const isFull = sockets.size >= limits.connections || strangers.length >= limits.unauthenticated;
  if (isFull || fromThere.length >= limits.unauthenticatedPerAddress) return void socket.destroy();
  const visitor: Visitor = { socket, address, identity: null };
  const name = `${socket.remoteAddress} ${socket.remotePort}`;
  sockets.set(name, visitor);
  const handshake = setTimeout(() => visitor.identity ?? socket.destroy(), limits.handshakeMs);
  socket.on("error", () => {});
  socket.once("close", () => {
    clearTimeout(handshake);
    sockets.delete(name);
  });
  ssh.injectSocket(socket);
}

function acceptVisitor(host: GitHost, client: Connection, visitor: Visitor): void {
  const { limits, log } = host;
  let refusals = 0;
  client.on("error", () => {});
  client.on("authentication", (ctx) => {
    authenticate(host.gate, ctx)
      .catch((error: unknown) => void log.error({ err: error }, "a key could not be looked up"))
      .then((result) => {
        if (result) {
          if (result !== "offered") visitor.identity = result;
          return ctx.accept();
        }
        refusals += ctx.method === "none" ? 0 : 1;
        ctx.reject(["publickey"]);
        if (refusals >= limits.refusedKeys) client.end();
      })
      .catch(() => visitor.socket.destroy());
  });
  client.once("ready", () => serveChannels(host, client, visitor));
}

function serveChannels(host: GitHost, client: Connection, { socket, identity }: Visitor): void {
  if (identity === null) return void socket.destroy();
  let channels = 0;
  let idle = setTimeout(() => client.end(), host.limits.idleMs);
  client.on("session", (accept, reject) => {
    if (channels >= host.limits.channelsPerConnection) return void reject();
    channels += 1;
    clearTimeout(idle);
    const session = accept();
    session.once("close", () => {
      channels -= 1;
      if (channels === 0) idle = setTimeout(() => client.end(), host.limits.idleMs);
    });
    serveSshSession(host, identity, session);
  });
  socket.once("close", () => clearTimeout(idle));
}
