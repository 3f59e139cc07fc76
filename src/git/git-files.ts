import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { replaceFileAsync } from "../kit/whole-file.ts";

export type GitFiles = Awaited<ReturnType<typeof writeGitFiles>>;

export async function writeGitFiles(dir: string, maxPackBytes: number) {
  const hooksDir = join(dir, "hooks");
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await mkdir(hooksDir, { recursive: true });
  const configFile = join(dir, "gitconfig");
  await replaceFileAsync(configFile, configText(hooksDir, maxPackBytes), { mode: 0o644 });
  await replaceFileAsync(join(hooksDir, "pre-receive"), preReceive, { mode: 0o755 });
  await chmod(hooksDir, 0o755);
  return {
    /** git's only configuration file, passed as GIT_CONFIG_GLOBAL. */
    configFile,
    hooksDir,
  };
}

// The hook sends one word for all push options, so that an option's text can't be mistaken for what git sends. Descriptors 3 and 4 lead to
// the control plane: 3 carries the question, which a line with a dot ends, and the decision; 4 carries the lines for the pusher. It fails
// closed: it exits with 0 only on "accepted". It is a shell script because a shell starts in a tenth of Node's time.
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

// The fsck exceptions are harmless defects in old repositories that GitHub and GitLab also accept.
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
