import { randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where the transport keeps what git's programs need. */
export interface GitFiles {
  /** git's one configuration file, given as GIT_CONFIG_GLOBAL. */
  readonly configFile: string;
  /** The unix socket that the hook talks to. */
  readonly socketPath: string;
}

// bind(2): sun_path has 108 bytes with the final NUL.
const longestSocketPath = 107;

/** Makes the folder with configuration and hooks, replacing an older version's; removes sockets that nobody listens on. */
export async function writeGitFiles(dir: string, maxPackBytes: number): Promise<GitFiles> {
  const hooksDir = join(dir, "hooks");
  for (const folder of [dir, hooksDir]) await mkdir(folder, { recursive: true, mode: 0o700 });
  const configFile = join(dir, "gitconfig");
  await replace(configFile, configText(hooksDir, maxPackBytes), 0o600);
  await replace(join(hooksDir, "pre-receive"), preReceive, 0o700);
  // An older version's, which would ask for what it no longer gets.
  await rm(join(hooksDir, "post-receive"), { force: true });
  await removeDeadSockets(dir);
  return { configFile, socketPath: newSocketPath(dir) };
}

// The hook reads its place from the environment, so that two versions of Berth on one folder do not disturb each other.
// The limits are those that bound git itself (see `boundedGit`); node reserves more address space than they allow.
const preReceive = `#!/bin/sh
ulimit -S -v unlimited 2>/dev/null
ulimit -S -t unlimited 2>/dev/null
exec "$BERTH_HOOK_NODE" "$BERTH_HOOK_SCRIPT"
`;

// The fsck exceptions are the harmless faults of old repositories that GitHub and GitLab accept too.
const configText = (hooksDir: string, maxPackBytes: number) => `[core]
\thooksPath = ${JSON.stringify(hooksDir)}
\tfilesRefLockTimeout = 5000
\tpackedRefsTimeout = 5000
\tbigFileThreshold = 64m
\tfsync = committed
\tdeltaBaseCacheLimit = 64m
\tpackedGitWindowSize = 32m
\tpackedGitLimit = 512m
[receive]
\tadvertisePushOptions = true
\tautogc = false
\tdenyDeleteCurrent = ignore
\tdenyDeletes = false
\tdenyNonFastForwards = false
\tfsckObjects = true
\tkeepAlive = 5
\tmaxInputSize = ${maxPackBytes}
\tunpackLimit = 1
\tupdateServerInfo = false
[receive "fsck"]
\tbadTimezone = ignore
\tmissingSpaceBeforeDate = ignore
\tzeroPaddedFilemode = ignore
[transfer]
\thideRefs = refs/berth
[uploadpack]
\tallowFilter = true
\tkeepAlive = 5
[pack]
\tdeltaCacheSize = 64m
\tthreads = 1
\twindowMemory = 64m
[http]
\tgetanyfile = false
\treceivepack = true
[gc]
\tauto = 0
[safe]
\tdirectory = *
`;

async function replace(file: string, text: string, mode: number): Promise<void> {
  const draft = `${file}.${randomBytes(4).toString("hex")}`;
  await writeFile(draft, text, { mode });
  await rename(draft, file);
}

function newSocketPath(dir: string): string {
  const name = `hook-${randomBytes(6).toString("hex")}.sock`;
  const path = join(dir, name);
  return Buffer.byteLength(path) <= longestSocketPath ? path : join(tmpdir(), `berth-${name}`);
}

async function removeDeadSockets(dir: string): Promise<void> {
  for (const name of await readdir(dir)) {
    const path = join(dir, name);
    if (/^hook-.*\.sock$/.test(name) && !(await answers(path))) await rm(path, { force: true });
  }
}

function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
