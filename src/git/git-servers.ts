import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { basename, dirname, resolve } from "node:path";
import ssh2 from "ssh2";
import { findPrlimit } from "../kit/bounded-command.ts";
import type { Log } from "../kit/log.ts";
import { until } from "../kit/until.ts";
import type { Repositories } from "../ports/repositories.ts";
import { unconfined, type Confinement } from "../sandbox/confine.ts";
import { fingerprintOf } from "./authenticate.ts";
import type { GitGate } from "./gate.ts";
import { writeGitFiles } from "./git-files.ts";
import type { GitHost } from "./git-process.ts";
import { createGitHttpHandler } from "./http-handler.ts";
import { defaultGitLimits, type GitLimits } from "./limits.ts";
import { createSshServer } from "./ssh-server.ts";

export interface GitServersOptions {
  readonly gate: GitGate;
  readonly repositories: Pick<Repositories, "ensure" | "setHead">;
  /** A private folder for configuration and hooks. Created if missing. */
  readonly dir: string;
  /** The file of the SSH host key. Created if missing, unless clients know a key already. */
  readonly hostKeyFile: string;
  /** The fingerprint that this host had at its last start; default: it had none. */
  readonly knownHostKey?: string | null;
  /** The address on which SSH listens; port 0 picks a free one. */
  readonly ssh: { readonly host: string; readonly port: number };
  readonly log: Log;
  readonly gitBin?: string;
  /** Isolates git's programs from the machine. Default: no isolation. */
  readonly confinement?: Confinement;
  readonly limits?: Partial<GitLimits>;
}

export type GitServers = Awaited<ReturnType<typeof createGitServers>>;

/** Prepares both servers; nothing listens yet. Rejects if the folder can't be written. */
export async function createGitServers(options: GitServersOptions) {
  const host = await prepareHost(options);
  const { hostKeyFile, knownHostKey = null } = options;
  // With a new key, every client would report an attack.
  const problem = knownHostKey === null || existsSync(hostKeyFile) ? null : lostKey(hostKeyFile);
  if (problem !== null) options.log.error({}, problem);
  const hostKey = problem === null ? await readHostKey(hostKeyFile) : null;
  const ssh = hostKey === null ? null : createSshServer(host, hostKey);
  const handle = createGitHttpHandler(host);
  let port = 0;
  let isClosing = false;
  return {
    /** Starts SSH; until then, pushes over HTTP are refused too. Rejects if the port is in use. */
    listen: async () => {
      port = (await ssh?.listen(options.ssh)) ?? 0;
    },
    /** The SSH port; 0 before `listen`, and if SSH stays closed. */
    get port() {
      return port;
    },
    /** Why SSH stays closed; null if it does not. */
    problem,
    /** The fingerprint of the SSH host key, as clients show it. */
    fingerprint: hostKey === null ? String(knownHostKey) : hostKeyFingerprint(hostKey),
    /** Must be mounted for every path under `/git/`. */
    httpHandler: async (req: IncomingMessage, res: ServerResponse) => {
      if (isClosing)
        res.writeHead(503, { "retry-after": "5", connection: "close" }).end("Berth is restarting; try again.\n");
      else await handle(req, res);
    },
    /** Accepts no more calls, waits for running ones, and kills those left after `graceMs`. */
    close: async (graceMs: number) => {
      isClosing = true;
      ssh?.stopListening();
      await endProcesses(host, graceMs);
      ssh?.destroy();
    },
  };
}

const lostKey = (file: string) =>
  `git over SSH stays closed: the host key ssh/${basename(file)} is missing from the data folder. Restore it from a copy and restart Berth; for a new key, which every client has to accept, run ssh-keygen -t ed25519 -N "" -f on that path.`;

async function prepareHost(options: GitServersOptions): Promise<GitHost> {
  const { gate, repositories, log } = options;
  const limits = { ...defaultGitLimits, ...options.limits };
  const files = await writeGitFiles(resolve(options.dir), limits.packBytes);
  const programs = { gitBin: options.gitBin ?? "git", prlimitBin: findPrlimit() };
  const { confinement = unconfined } = options;
  return { gate, repositories, files, programs, confinement, limits, log, running: new Set() };
}

// A released hook needs milliseconds to notify its pusher.
const refusedMs = 2000;
const killedMs = 6000;

async function endProcesses({ running }: GitHost, graceMs: number): Promise<void> {
  const areOver = (timeoutMs: number) => until(() => (running.size === 0 ? true : undefined), { timeoutMs });
  if (await areOver(graceMs)) return;
  for (const process of running) process.releaseHook();
  if (await areOver(refusedMs)) return;
  for (const process of running) process.kill();
  await areOver(killedMs);
}

/** Reads this host's ed25519 key, or creates it (mode 0600). Two processes that start at once get the same; no crash leaves a part. */
export async function readHostKey(file: string): Promise<string> {
  const found = await readFile(file, "utf8").catch(() => null);
  if (found !== null) return found;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${randomBytes(4).toString("hex")}`;
  const key = newKey();
  await writeFile(draft, key.private, { mode: 0o600 });
  try {
    await link(draft, file);
    await writeFile(`${file}.pub`, `${key.public}\n`, { mode: 0o644 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    await rm(draft, { force: true });
  }
  return readFile(file, "utf8");
}

// Generates keys until ssh2 can read one: of 3000 keys that ssh2 wrote, it could not read 9, and storing such a key would make every start fail.
function newKey(): ReturnType<typeof ssh2.utils.generateKeyPairSync> {
  for (;;) {
    const key = ssh2.utils.generateKeyPairSync("ed25519", { comment: "berth" });
    if (!(ssh2.utils.parseKey(key.private) instanceof Error)) return key;
  }
}

/** Returns the fingerprint that OpenSSH shows for an unknown host key: `SHA256:…`. */
export function hostKeyFingerprint(hostKey: string): string {
  const key = ssh2.utils.parseKey(hostKey);
  if (key instanceof Error) throw key;
  return fingerprintOf(key.getPublicSSH());
}
