/** The disk of the data folder on one machine, and a reserve on it that only the platform may use. */
export interface DataDisk {
  /** Returns the free space. Cheap enough to call before each piece of work. */
  observe(): Promise<DiskSpace>;
  /** Frees the reserve when the platform itself could stop working, recreates it once there is plenty. Resolves with what it did. */
  keepReserve(): Promise<"kept" | "freed" | "made" | "missing">;
  /** Throws the system error when no file can be written. */
  probeWrite(): Promise<void>;
}

export interface DiskSpace {
  readonly total_bytes: number;
  /** Free space for processes that don't run as root. */
  readonly available_bytes: number;
  /** Free space comes near the floor: copies of tenants' data stop, so that the data itself can grow on. */
  readonly is_low: boolean;
  /** Free space is below the floor: tenants' data must not grow. */
  readonly is_short: boolean;
  /** Almost no space is left: start nothing that writes. */
  readonly is_full: boolean;
}
