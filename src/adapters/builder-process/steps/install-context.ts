import type { Hashing, TreeLimits } from "../release/hash-tree.ts";
import type { InstallStore } from "../tools/install-store.ts";
import type { PackageStore } from "../tools/package-store.ts";
import type { StepContext } from "./run-step.ts";
import type { Spares } from "./spares.ts";
import type { Trash } from "./trash.ts";

export interface InstallContext extends StepContext {
  readonly projectCacheDir: string;
  readonly spares: Spares;
  readonly packages: PackageStore;
  /** Null if projects share no installed folders. */
  readonly installStore: InstallStore | null;
  /** The platform's part of `env`; `variables` is the project's part. */
  readonly packageEnv: Readonly<Record<string, string>>;
  readonly variables: Readonly<Record<string, string>>;
  readonly trash: Trash;
  readonly hashing: Hashing;
  readonly imageLimits: TreeLimits;
  /** Aborts when the platform stops; cancels work after the build. */
  readonly upkeep: AbortSignal;
  /** Work to do after the build has ended. */
  readonly after: (() => Promise<void>)[];
}
