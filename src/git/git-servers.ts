import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { findPrlimit } from "../kit/bounded-command.ts";
import { until } from "../kit/until.ts";
import type { Log } from "../kit/log.ts";
import type { Repositories } from "../ports/repositories.ts";
import type { GitGate } from "./gate.ts";
import { writeGitFiles } from "./git-files.ts";
import type { GitHost } from "./git-process.ts";
import { createHookServer } from "./hook-server.ts";
import { readHostKey } from "./host-key.ts";
import { createGitHttpHandler, type GitHttpHandler } from "./http-handler.ts";
import { defaultGitLimits, type GitLimits } from "./limits.ts";
import { Pushes } from "./pushes.ts";
import { createSshServer } from "./ssh-server.ts";

export interface GitServersOptions {
  readonly gate: GitGate;
  readonly repositories: Pick<Repositories, "ensure" | "setHead">;
  /** A private folder for configuration, hooks and sockets. Made when missing. */
  readonly dir: string;
  /** The file of the SSH host key, made once. */
  readonly hostKeyFile: string;
  /** Where SSH listens; port 0 takes a free one. */
  readonly ssh: { readonly host: string; readonly port: number };
  readonly log: Log;
  readonly gitBin?: string;
  readonly limits?: Partial<GitLimits>;
}

/** git's two ways in. */
export interface GitServers {
  /** Starts SSH; before it, pushes over HTTP are refused too. Rejects when the port is taken. */
  listen(): Promise<void>;
  /** The port that SSH listens on; 0 before `listen`. */
  readonly port: number;
  /** To be mounted for every path under `/git/`. */
  readonly httpHandler: GitHttpHandler;
  /** Takes no more calls, waits for those that run, and ends what is left after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** Prepares both servers; nothing listens yet. Faults: the folder cannot be written. */
export async function createGitServers(options: GitServersOptions): Promise<GitServers> {
  const host = await prepareHost(options);
  const hooks = createHookServer({ ...host, socketPath: host.files.socketPath });
  const ssh = createSshServer(host, await readHostKey(options.hostKeyFile));
  const handle = createGitHttpHandler(host);
  let port = 0;
  let isClosing = false;
  return {
    listen: async () => {
      await hooks.listen();
      port = await ssh.listen(options.ssh);
    },
    get port() {
      return port;
    },
    httpHandler: async (req, res) => {
      if (isClosing)
        res.writeHead(503, { "retry-after": "5", connection: "close" }).end("Berth is restarting; try again.\n");
      else await handle(req, res);
    },
    close: async (graceMs) => {
      isClosing = true;
      ssh.stopListening();
      await endProcesses(host, graceMs);
      ssh.destroy();
      await hooks.close();
    },
  };
}

async function prepareHost(options: GitServersOptions): Promise<GitHost> {
  const { gate, repositories, log } = options;
  const limits = { ...defaultGitLimits, ...options.limits };
  const files = await writeGitFiles(resolve(options.dir), limits.packBytes);
  const hookScript = join(fileURLToPath(new URL(".", import.meta.url)), "hook.mjs");
  const programs = {
    gitBin: options.gitBin ?? "git",
    nodeBin: process.execPath,
    hookScript,
    prlimitBin: findPrlimit(),
  };
  return { gate, repositories, files, programs, pushes: new Pushes(), limits, log, running: new Set() };
}

const killedMs = 6000;

async function endProcesses({ running }: GitHost, graceMs: number): Promise<void> {
  const isDone = () => (running.size === 0 ? true : undefined);
  if (await until(isDone, { timeoutMs: graceMs })) return;
  for (const process of running) process.kill();
  await until(isDone, { timeoutMs: killedMs });
}
