import { createServer, type AddressInfo, type Socket } from "node:net";
import ssh2, { type Connection, type ServerChannel, type Session } from "ssh2";
import { addressKey } from "../kit/address-key.ts";
import { type GitHost, endedEarly, startGit, type GitProcess } from "./git-process.ts";
import { authenticate, type SshIdentity } from "./authenticate.ts";
import { admit, mayGoOn, missingText } from "./admission.ts";
import { serveCommand } from "./commands.ts";
import { copyOutput } from "./cgi.ts";
import { faultAnswer } from "./fault-answer.ts";
import type { GitAccess } from "./gate.ts";
import { parseSshCommand, safeProtocol, type SshRequest } from "./paths.ts";

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

/** Exit code for fatal errors, the same as git uses. */
const failedCode = 128;

/** Serves one session channel: a push, a fetch, or a greeting. No shell, no terminal, no forwarding. */
function serveSshSession(host: GitHost, identity: SshIdentity, session: Session): void {
  let protocol: string | null = null;
  let isUsed = false;
  session.on("env", (accept, reject, info) => {
    // ssh2 names the fields `key` and `val`; its type definitions are outdated.
    const { key, val } = info as unknown as { key: string; val: string };
    if (key === "GIT_PROTOCOL") protocol = safeProtocol(val);
    (key === "GIT_PROTOCOL" ? accept : reject)?.();
  });
  session.on("shell", (accept, reject) => {
    if (isUsed) return void reject();
    isUsed = true;
    finish(accept(), 0, greeting(identity));
  });
  session.on("exec", (accept, reject, { command }) => {
    if (isUsed) return void reject();
    isUsed = true;
    const channel = accept();
    channel.on("error", () => {});
    serveCommandLine(host, identity, { channel, command, protocol }).catch((error: unknown) => {
      host.log.error({ err: error }, "an SSH session failed");
      finish(channel, failedCode, faultAnswer(error).text);
    });
  });
}

interface Line {
  readonly channel: ServerChannel;
  readonly command: string;
  readonly protocol: string | null;
}

async function serveCommandLine(host: GitHost, identity: SshIdentity, line: Line): Promise<void> {
  // Watched from here on, because the client may leave while git starts.
  const left = new AbortController();
  line.channel.once("close", () => left.abort());
  const request = parseSshCommand(line.command);
  if (request === null) return finish(line.channel, failedCode, unknownCommandText);
  const wanted = { path: request.path, access: accessOf(request) };
  const admission = await currentAdmission(host, identity, wanted);
  if (admission.outcome === "missing") return finish(line.channel, failedCode, missingText);
  if (admission.outcome !== "admitted") return finish(line.channel, failedCode, `${admission.reason}\n`);
  const process = await startGit(host, {
    service: request.service,
    caller: admission.caller,
    project: admission.project,
    protocol: line.protocol,
    command: (name) => serveCommand(host.programs, request.service, name),
    stillAllowed: async () => mayGoOn(await currentAdmission(host, identity, wanted)),
  });
  if (process === null) return finish(line.channel, failedCode, "Berth is busy; try again in a minute.\n");
  await connect(line.channel, process, left.signal);
}

/** A connection may outlive a key, so every session checks again, and then once a second. */
async function currentAdmission(host: GitHost, identity: SshIdentity, wanted: Parameters<typeof admit>[2]) {
  return admit(host.gate, await host.gate.authenticateKey(identity.fingerprint), wanted);
}

async function connect(channel: ServerChannel, process: GitProcess, left: AbortSignal): Promise<void> {
  const { child } = process;
  if (left.aborted) return process.clientGone();
  left.addEventListener("abort", process.clientGone, { once: true });
  channel.on("data", process.touch);
  child.stdout.on("data", process.touch);
  channel.pipe(process.input);
  const copied = copyOutput(child.stdout, channel, process.report);
  child.stderr.on("data", (chunk: Buffer) => void (left.aborted || channel.stderr.write(chunk)));
  const [code] = await Promise.all([process.answered, copied]);
  if (!left.aborted) finish(channel, code, code !== 0 && process.report !== null ? endedEarly : "");
}

function finish(channel: ServerChannel, code: number, text = ""): void {
  if (text !== "") (code === 0 ? channel : channel.stderr).write(code === 0 ? text : `berth: ${text}`);
  channel.exit(code);
  channel.end();
}

function accessOf(request: SshRequest): GitAccess {
  return request.service === "git-receive-pack" ? "write" : "read";
}

const unknownCommandText =
  "only git push and git fetch are served here, for addresses such as ssh://git@host:port/organization/project.git\n";

function greeting({ callers }: SshIdentity): string {
  const organizations = callers.map((caller) => caller.organization_slug).join(", ");
  return `Hi ${callers[0]?.name}! Your key works, for: ${organizations}. Berth takes git pushes here; there is no shell.\n`;
}
