import type { Hashing, TreeLimits } from "../release/hash-tree.ts";
import type { InstallStore } from "../tools/install-store.ts";
import type { PackageStore } from "../tools/package-store.ts";
import type { StepContext } from "./run-step.ts";
import type { Spares } from "./spares.ts";
import type { Trash } from "./trash.ts";

/** What installing takes beside what every step of a build has. */
export interface InstallContext extends StepContext {
  readonly projectCacheDir: string;
  readonly spares: Spares;
  readonly packages: PackageStore;
  /** Null: projects share no installed folders. */
  readonly installStore: InstallStore | null;
  /** The part of `env` that is the platform's, and the part that is the project's. */
  readonly packageEnv: Readonly<Record<string, string>>;
  readonly variables: Readonly<Record<string, string>>;
  readonly trash: Trash;
  readonly hashing: Hashing;
  readonly imageLimits: TreeLimits;
  /** Aborts when the platform stops: ends what happens after the build. */
  readonly upkeep: AbortSignal;
  /** What is left to do when the build has ended. */
  readonly after: (() => Promise<void>)[];
}
