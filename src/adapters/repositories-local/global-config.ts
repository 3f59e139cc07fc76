import { replaceFileAsync } from "../../kit/whole-file.ts";

/** The only configuration of all repositories, instead of the machine's and the user's. Hooks never run here: these operations are no pushes. */
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

export async function writeGlobalConfig(file: string): Promise<void> {
  // Readable for all: git runs as another user and silently skips a file that it can't read.
  await replaceFileAsync(file, text, { mode: 0o644 });
}
