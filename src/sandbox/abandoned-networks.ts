import { existsSync, mkdirSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../kit/exec.ts";
import { readJson } from "../kit/whole-file.ts";

/** Below /run, so that a reboot removes the notes together with the nft tables and network namespaces they describe. */
const usualNotes = "/run/berth-networks";

/** The network of one data folder. All names derived from its tag are `b<tag>-…`, `berth-<tag>-…` and `berth_<tag>`. */
export interface NetworkNote {
  readonly tag: string;
  /** A folder inside the data folder. */
  readonly stateDir: string;
  /** Its addresses in CIDR notation, such as `10.64.16.0/20`. */
  readonly block: string;
}

/** Returns the networks of deleted data folders without a process, whose tables would filter every packet of the machine for ever. */
export async function abandonedNetworks(ip: string, notes: string = usualNotes): Promise<readonly NetworkNote[]> {
  if (!existsSync(notes)) return [];
  const noted = readdirSync(notes).flatMap((tag) => readNote(join(notes, tag)));
  const orphans = noted.filter(({ stateDir, namespace }) => namespace === ownNamespace() && !existsSync(stateDir));
  const busy = await Promise.all(orphans.map(({ tag }) => hasProcesses(ip, tag)));
  return orphans.filter((_, index) => !busy[index]);
}

/** Records outside the data folder that its network exists on this machine. */
export function noteNetwork(note: NetworkNote, notes: string = usualNotes): void {
  mkdirSync(notes, { recursive: true, mode: 0o700 });
  writeFileSync(join(notes, note.tag), JSON.stringify({ ...note, namespace: ownNamespace() }), { mode: 0o600 });
}

/** Returns whether a data folder's network still stands: its last process ended without dismantling it. */
export function isNoted({ tag, block }: Pick<NetworkNote, "tag" | "block">, notes: string = usualNotes): boolean {
  return readNote(join(notes, tag)).some((note) => note.block === block && note.namespace === ownNamespace());
}

export function forgetNetwork(tag: string, notes: string = usualNotes): void {
  rmSync(join(notes, tag), { force: true });
}

/** Processes of other network namespaces share the notes, but neither the tables nor the routes. */
const ownNamespace = (): string => readlinkSync("/proc/self/ns/net");

interface KeptNote extends NetworkNote {
  /** The network namespace of the tables and routes. */
  readonly namespace: string;
}

/** Returns the network namespaces of a tag, as `ip netns` names them. */
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

/** Returns no note when the file can't be read: another Berth process may be writing or removing it, and the next start tries again. */
function readNote(file: string): readonly KeptNote[] {
  const note = readJson<KeptNote>(file);
  return note === undefined ? [] : [note];
}
