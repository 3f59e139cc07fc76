import type { FoundParts } from "./found-parts.ts";

/** A part that this machine lacks: what doesn't work without it, and what to run to get it. */
export interface MissingPart {
  readonly part: string;
  readonly effect: string;
  readonly command: string;
  /** True when Berth cannot start without it. */
  readonly required: boolean;
}

/** What the advice depends on besides the parts. */
export interface MachineFacts {
  /** The major version that wrote the existing data. */
  readonly pinnedMajor: number | undefined;
  readonly isRoot: boolean;
  readonly hasApt: boolean;
}

/** Returns the missing parts, required ones first. */
export function missingParts(found: FoundParts, facts: MachineFacts): readonly MissingPart[] {
  return [...postgresParts(found, facts), ...programParts(found, facts), ...networkParts(found, facts)];
}

function postgresParts(found: FoundParts, facts: MachineFacts): readonly MissingPart[] {
  if (!found.wantsPostgres) return [];
  const suffix = facts.pinnedMajor === undefined ? "" : `-${facts.pinnedMajor}`;
  if (found.postgresBin === null) {
    const what = facts.pinnedMajor === undefined ? "PostgreSQL 15 or newer" : `PostgreSQL ${facts.pinnedMajor}`;
    const why = facts.pinnedMajor === undefined ? "" : "; the existing data needs exactly this version";
    const effect = `Berth cannot store its state without PostgreSQL${why}`;
    return [{ part: what, effect, command: installAdvice([`postgresql${suffix}`], facts), required: true }];
  }
  if (found.pgDump !== null && found.pgRestore !== null) return [];
  const effect = "databases can be neither backed up nor restored";
  const command = installAdvice([`postgresql-client-${found.postgresMajor}`], facts);
  return [{ part: "pg_dump and pg_restore", effect, command, required: false }];
}

function programParts(found: FoundParts, facts: MachineFacts): readonly MissingPart[] {
  const lacking: MissingPart[] = [];
  const add = (part: string, required: boolean, effect: string, packages: readonly string[]) =>
    lacking.push({ part, effect, command: installAdvice(packages, facts), required });
  if (found.haproxy === null && found.wantsHaproxy)
    add("HAProxy 2.6 or newer", true, "Berth cannot serve applications without it", ["haproxy"]);
  if (found.git === null) add("git", true, "nothing can be pushed", ["git"]);
  if (found.bwrap === null) {
    add("bubblewrap", false, "builds and applications are not isolated from this machine", ["bubblewrap"]);
  }
  if (found.setpriv === null && facts.isRoot) {
    add("setpriv", false, "applications cannot run as separate users", ["util-linux"]);
  }
  if (found.npm === null) add("npm", false, "Node applications cannot be built", ["npm"]);
  if (found.python === null) add("python3", false, "Python applications cannot be built", ["python3", "python3-venv"]);
  return lacking;
}

/** Applications get networks of their own with either pasta or, as root, nft and ip, so one of the two is enough. */
function networkParts(found: FoundParts, facts: MachineFacts): readonly MissingPart[] {
  const byRoot = facts.isRoot && found.nft !== null && found.ip !== null;
  if (found.pasta !== null || byRoot) return [];
  const packages = facts.isRoot ? ["nftables", "iproute2"] : ["passt"];
  const effect = "applications share this machine's network and can reach services on 127.0.0.1";
  return [{ part: packages.join(" and "), effect, command: installAdvice(packages, facts), required: false }];
}

function installAdvice(packages: readonly string[], facts: MachineFacts): string {
  if (!facts.hasApt) return `install ${packages.join(" and ")} with this system's package manager`;
  return `${facts.isRoot ? "" : "sudo "}apt-get install ${packages.join(" ")}`;
}
