import { randomBytes } from "node:crypto";
import { rename, writeFile } from "node:fs/promises";

/**
 * The one configuration of all repositories, in a file that git reads instead of the machine's and the user's.
 * Hooks never run here: what this adapter does with a repository is not a push.
 */
const text = `[core]
\thooksPath = /dev/null
\tfilesRefLockTimeout = 5000
\tpackedRefsTimeout = 5000
\tbigFileThreshold = 64m
\tdeltaBaseCacheLimit = 64m
\tpackedGitWindowSize = 32m
\tpackedGitLimit = 512m
\tfsync = committed
[gc]
\tauto = 4000
\tautoDetach = false
\tautoPackLimit = 40
\tpruneExpire = 2.days
\tlogExpiry = 1.day
\twriteCommitGraph = false
[pack]
\twindowMemory = 64m
\tthreads = 1
[tar]
\tumask = 0022
[safe]
\tdirectory = *
`;

/** Writes the configuration to `file`, replacing what an older version wrote, in one step. */
export async function writeGlobalConfig(file: string): Promise<void> {
  const draft = `${file}.${randomBytes(4).toString("hex")}`;
  // git runs as a user of its own, and passes over a file that it may not read.
  await writeFile(draft, text, { mode: 0o644 });
  await rename(draft, file);
}
