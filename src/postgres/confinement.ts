import { run } from "../kit/exec.ts";
import { lightCommand } from "../sandbox/light-sandbox.ts";

/** How PostgreSQL's programs are isolated from the rest of the machine. */
export interface Confinement {
  readonly binDir: string;
  /** The bubblewrap program; null where it is missing or does not work, so that only the user id isolates the programs. */
  readonly bwrap: string | null;
  /** The user the programs run as; null for the current one. */
  readonly uid: number | null;
}

/** Chooses the strongest confinement that works here. Throws, with a message for the operator, when the programs can't run safely. */
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

const working = new Set<string>();

/** Tests whether bubblewrap works by running it: the kernel or an enclosing container may forbid it. */
async function confinementWorks(confinement: Confinement): Promise<boolean> {
  if (confinement.bwrap === null) return false;
  const key = `${confinement.bwrap} ${confinement.uid === null}`;
  if (working.has(key)) return true;
  const probe = lightCommand({ ...sandboxOf(confinement), binds: [] }, { file: "/usr/bin/env", args: ["true"] });
  const result = await run(probe, { timeoutMs: 60_000 }).catch(() => undefined);
  if (result?.exitCode === 0) working.add(key);
  return working.has(key);
}

export const programEnvironment = { PATH: "/usr/bin:/bin", LC_ALL: "C.UTF-8", TZ: "UTC" };

/** The sandbox settings that all of PostgreSQL's programs share. Requires bubblewrap. */
export const sandboxOf = ({ bwrap, uid }: Confinement) => ({
  bwrap: bwrap as string,
  user: uid === null ? null : { uid, setpriv: "/usr/bin/setpriv" },
});

export const readOnly = (source: string, target: string) => ({ source, target, writable: false });
export const writable = (source: string, target: string) => ({ source, target, writable: true });

/** Binds `passwd` and `group` of a folder into the sandbox: the names of the user and group that the programs run as. */
export const usersIn = (config: string) => [
  readOnly(`${config}/passwd`, "/etc/passwd"),
  readOnly(`${config}/group`, "/etc/group"),
];

export function isSystemFolder(path: string): boolean {
  return path.startsWith("/usr/");
}
