import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../kit/exec.ts";

/** A note is gone after a reboot, as tables and namespaces are. */
const usualNotes = "/run/berth-networks";

/** What the network of one data folder is made of; all names of a tag are `b<tag>-…`, `berth-<tag>-…` and `berth_<tag>`. */
export interface NetworkNote {
  readonly tag: string;
  /** Inside of the data folder. */
  readonly stateDir: string;
  /** Its addresses, as `10.64.16.0/20`. */
  readonly block: string;
}

/**
 * The networks whose data folder was deleted while they stood, and in which no process is left: each packet of the machine would pass
 * their tables for ever.
 */
export async function abandonedNetworks(ip: string, notes: string = usualNotes): Promise<readonly NetworkNote[]> {
  if (!existsSync(notes)) return [];
  const noted = readdirSync(notes).flatMap((tag) => readNote(join(notes, tag)));
  const orphans = noted.filter(({ stateDir }) => !existsSync(stateDir));
  const busy = await Promise.all(orphans.map(({ tag }) => hasProcesses(ip, tag)));
  return orphans.filter((_, index) => !busy[index]);
}

/** Remembers outside of the data folder that its network stands on this machine. */
export function noteNetwork(note: NetworkNote, notes: string = usualNotes): void {
  mkdirSync(notes, { recursive: true, mode: 0o700 });
  writeFileSync(join(notes, note.tag), JSON.stringify(note), { mode: 0o600 });
}

export function forgetNetwork(tag: string, notes: string = usualNotes): void {
  rmSync(join(notes, tag), { force: true });
}

/** The namespaces of a network, as `ip netns` names them. */
export function spacesOf(tag: string): readonly string[] {
  const folder = "/run/netns";
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith(`berth-${tag}-`)) : [];
}

async function hasProcesses(ip: string, tag: string): Promise<boolean> {
  for (const space of spacesOf(tag)) {
    const found = await run({ file: ip, args: ["netns", "pids", space] }, { timeoutMs: 10_000 });
    if (found.stdout.trim() !== "") return true;
  }
  return false;
}

/** Another start may be writing or removing the same note; what cannot be read is left to the next start. */
function readNote(file: string): readonly NetworkNote[] {
  try {
    return [JSON.parse(readFileSync(file, "utf8")) as NetworkNote];
  } catch {
    return [];
  }
}
