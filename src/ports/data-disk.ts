/** The disk of the data folder on one machine, and a reserve on it that only the platform may use. */
export interface DataDisk {
  /** What is left. Cheap: it may be called before each piece of work. */
  observe(): Promise<DiskSpace>;
  /**
   * Frees the reserve when space is so short that the platform itself could stop working, and makes it again when there is plenty.
   * Resolves with what it did.
   */
  keepReserve(): Promise<"kept" | "freed" | "made" | "missing">;
  /** Throws the reason, an error of the system, when no file can be written. */
  probeWrite(): Promise<void>;
}

export interface DiskSpace {
  readonly total_bytes: number;
  /** For programs that are not root's. */
  readonly available_bytes: number;
  /** Less is left than the floor: what belongs to tenants may not grow. */
  readonly is_short: boolean;
  /** Hardly anything is left, so nothing may be started that writes. */
  readonly is_full: boolean;
}
