/** A step of an upgrade that is complete; `going_back` has a reason, `failed` and `back` end it with one. */
export interface UpgradeStep {
  readonly step:
    | "requested"
    | "fetched"
    | "checked"
    | "backed_up"
    | "copied"
    | "rehearsed"
    | "switching"
    | "switched"
    | "done"
    | "failed"
    | "going_back"
    | "back";
  /** RFC 3339. */
  readonly at: string;
  readonly reason?: string;
}

export interface ReleaseReport {
  /** The installed versions; empty in a clone, which git updates. */
  readonly installed: readonly {
    readonly version: string;
    readonly commit: string | null;
    /** Whether the next start uses it. */
    readonly current: boolean;
    /** Processes that run from its folder. */
    readonly processes: number;
  }[];
  /** Migrations that contract the schema and wait for `finalize`. */
  readonly unfinalized: readonly string[];
  /** The newest upgrade; `to` is null until its release is fetched. */
  readonly upgrade: {
    readonly from: string;
    readonly to: string | null;
    readonly steps: readonly UpgradeStep[];
  } | null;
}

export interface WantedUpgrade {
  readonly source: string | null;
  /** Whether the platform is not backed up before. */
  readonly without_backup: boolean;
}

/** The versions of Berth on this machine, and the change from one to another. */
export interface Releases {
  /** Returns the newest released version if it is newer than the one that runs; null also where releases are not looked for. */
  newer(): string | null;
  report(): Promise<ReleaseReport>;
  /** Begins an upgrade, which goes on when this control plane ends. `source`: version, address, file, or null. Returns why not, or null. */
  upgrade(wanted: WantedUpgrade): Promise<"clone" | "under_way" | null>;
  /** Applies the migrations after which the version before no longer runs, and returns their names. Refused while an upgrade is under way. */
  finalize(): Promise<readonly string[] | "under_way">;
}
