import { randomBytes } from "node:crypto";
import { chmod, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Where the transport keeps what git's programs need. */
export interface GitFiles {
  /** git's one configuration file, given as GIT_CONFIG_GLOBAL. */
  readonly configFile: string;
  readonly hooksDir: string;
}

/** Makes the folder with configuration and hooks, replacing an older version's. */
export async function writeGitFiles(dir: string, maxPackBytes: number): Promise<GitFiles> {
  const hooksDir = join(dir, "hooks");
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await mkdir(hooksDir, { recursive: true });
  const configFile = join(dir, "gitconfig");
  await replace(configFile, configText(hooksDir, maxPackBytes), 0o644);
  await replace(join(hooksDir, "pre-receive"), preReceive, 0o755);
  // Those of older versions.
  await chmod(hooksDir, 0o755);
  await rm(join(hooksDir, "post-receive"), { force: true });
  for (const name of await readdir(dir)) if (/^hook-.*\.sock$/.test(name)) await rm(join(dir, name), { force: true });
  return { configFile, hooksDir };
}

// Of push options the control plane gets one word, so that no option's text can stand in the place of what git sends.
// Descriptors 3 and 4 lead to the control plane: the question, ended by a line with a dot, and the decision go by 3, the lines for the
// pusher by 4. It fails closed: nothing but "accepted" ends it with 0. A shell starts in a tenth of the time that Node takes.
const preReceive = `#!/bin/sh
wants=deploy
i=0
while [ "$i" -lt "\${GIT_PUSH_OPTION_COUNT:-0}" ]; do
  eval "option=\\$GIT_PUSH_OPTION_$i"
  case $option in plan) [ "$wants" = unknown ] || wants=plan ;; *) wants=unknown ;; esac
  i=$((i + 1))
done
{ printf '%s\\n' "$GIT_QUARANTINE_PATH" "$GIT_OBJECT_DIRECTORY" "$GIT_ALTERNATE_OBJECT_DIRECTORIES" "$wants"; cat; echo .; } >&3
cat <&4
read -r decision <&3
case $decision in accepted) exit 0 ;; refused) exit 1 ;; esac
echo " !     Berth is restarting; nothing was changed, push again"
exit 1
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
