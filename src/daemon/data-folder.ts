import { randomBytes } from "node:crypto";
import {
  accessSync,
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { attempt } from "../kit/attempt.ts";
import { formatIdentity, identify, isKnownDead, ownIdentity, type ProcessIdentity } from "../kit/processes.ts";
import { StartRefused, pathsIn } from "./config.ts";

/** Creates the data folder (0700) and locks it for this process. Throws `StartRefused` if another process holds it or it can't be written. */
export function holdDataFolder(dataDir: string): { release(): void } {
  makeFolder(dataDir);
  const file = pathsIn(dataDir).lock;
  const me = formatIdentity(ownIdentity());
  for (let attempt = 0; attempt < 3; attempt += 1) {
    if (claim(file, me)) return { release: () => release(file, me) };
    const holder = readHolder(file);
    if (holder !== undefined && holder !== me && !isAbandoned(holder)) {
      const pid = holder.split("/")[1];
      throw new StartRefused(
        `Berth already runs on ${dataDir} (process ${pid}). Stop it first, or set BERTH_DATA to another folder.`,
      );
    }
    rmSync(file, { force: true });
  }
  throw new StartRefused(
    `Another Berth process is just starting on ${dataDir}. Use that one, or set BERTH_DATA to another folder.`,
  );
}

/** Returns why no platform may start on a data folder: a restore has not filled it, or it only stands by. Otherwise null. */
export function unstartable(dataDir: string): string | null {
  const { standby, restoring } = pathsIn(dataDir);
  if (existsSync(restoring)) return "A restore into this data folder was interrupted. Run it again.";
  return existsSync(standby)
    ? "This data folder stands by for a platform elsewhere. `berthd promote` makes it the platform."
    : null;
}

/** Returns whether a platform runs on the folder or is starting. */
export function isDataFolderHeld(dataDir: string): boolean {
  const holder = readHolder(pathsIn(dataDir).lock);
  return holder !== undefined && !isAbandoned(holder);
}

/** Returns the process that holds the folder; undefined if none does. */
export function holderOf(dataDir: string): ProcessIdentity | undefined {
  const holder = readHolder(pathsIn(dataDir).lock);
  const found = holder === undefined ? undefined : identify(Number(holder.split("/")[1]));
  return found !== undefined && formatIdentity(found) === holder ? found : undefined;
}

/** Returns this machine's name in database rows, which the first start creates from the hostname and random digits. */
export function machineName(dataDir: string): string {
  const file = join(dataDir, "machine-name");
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    const name = `${hostname()}-${randomBytes(3).toString("hex")}`;
    writeFileSync(file, `${name}\n`, { mode: 0o600 });
    return name;
  }
}

function makeFolder(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    accessSync(dataDir, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new StartRefused(
      `The data folder ${dataDir} cannot be written (${(error as NodeJS.ErrnoException).code}). Set BERTH_DATA to a folder that you own.`,
    );
  }
  const owner = statSync(dataDir).uid;
  if (owner !== process.getuid?.()) {
    throw new StartRefused(
      `The data folder ${dataDir} belongs to another user (uid ${owner}). Start Berth as that user, or set BERTH_DATA to a folder of yours.`,
    );
  }
}

function claim(file: string, me: string): boolean {
  // Written first, so that whoever finds the lock reads its holder.
  const written = `${file}.${process.pid}`;
  try {
    writeFileSync(written, me, { mode: 0o600 });
    linkSync(written, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw new StartRefused(
      `The data folder ${dirname(file)} cannot be written (${(error as NodeJS.ErrnoException).code}). Free space on its disk and make it writable for this user.`,
    );
  } finally {
    rmSync(written, { force: true });
  }
}

function readHolder(file: string): string | undefined {
  return attempt(() => readFileSync(file, "utf8").trim(), undefined);
}

/** Returns whether the holder is gone: its process has ended, or it belongs to an earlier boot. */
function isAbandoned(holder: string): boolean {
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return !holder.startsWith(`${boot}/`) || isKnownDead(holder);
}

function release(file: string, me: string): void {
  if (readHolder(file) === me) rmSync(file, { force: true });
}
