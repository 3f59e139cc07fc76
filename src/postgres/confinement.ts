import { run } from "../kit/exec.ts";
import { lightCommand } from "../sandbox/light-sandbox.ts";

/** How PostgreSQL's programs are kept apart from the rest of the machine. */
export interface Confinement {
  readonly binDir: string;
  /** The bubblewrap program; null where it is missing or cannot be used: then nothing but the user id separates. */
  readonly bwrap: string | null;
  /** The user they run as; null is the current one. */
  readonly uid: number | null;
}

/** How the programs are to be kept apart here. Throws, in words for the operator, when that cannot be done. */
export async function chooseConfinement(asked: Confinement): Promise<Confinement> {
  const isRoot = process.getuid?.() === 0;
  if (isRoot && asked.uid === null)
    throw new Error("PostgreSQL does not run as root: an instance needs a user id of its own");
  if (await confinementWorks(asked)) return asked;
  if (isRoot)
    throw new Error(
      "as root, PostgreSQL is started with bubblewrap, which is missing or does not work here: apt-get install bubblewrap",
    );
  return { ...asked, bwrap: null };
}

/** Whether bubblewrap works here, really tried: a kernel or a container around us may forbid it. */
async function confinementWorks(confinement: Confinement): Promise<boolean> {
  if (confinement.bwrap === null) return false;
  const probe = lightCommand({ ...sandboxOf(confinement), binds: [] }, { file: "/usr/bin/env", args: ["true"] });
  const result = await run(probe, { timeoutMs: 10_000 }).catch(() => undefined);
  return result?.exitCode === 0;
}

/** What PostgreSQL's programs get as their environment, and nothing else. */
export const programEnvironment = { PATH: "/usr/bin:/bin", LC_ALL: "C.UTF-8", TZ: "UTC" };

/** The part of a light sandbox that all of PostgreSQL's programs share. Only with bubblewrap. */
export const sandboxOf = ({ bwrap, uid }: Confinement) => ({
  bwrap: bwrap as string,
  user: uid === null ? null : { uid, setpriv: "/usr/bin/setpriv" },
});

export const readOnly = (source: string, target: string) => ({ source, target, writable: false });
export const writable = (source: string, target: string) => ({ source, target, writable: true });

/** The names of the user and group that the programs run as, from a folder that holds them as `passwd` and `group`. */
export const usersIn = (config: string) => [
  readOnly(`${config}/passwd`, "/etc/passwd"),
  readOnly(`${config}/group`, "/etc/group"),
];

export function isSystemFolder(path: string): boolean {
  return path.startsWith("/usr/");
}
