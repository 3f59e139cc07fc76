import type { Log } from "../../kit/log.ts";
import type { TreeLimits } from "./release/hash-root.ts";
import type { MachineLanguages } from "./tools/machine-languages.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";

export interface ProcessBuilderOptions {
  /** Finished images, `<project_id>/<sha256 in hex>/`; shared with the runtime. */
  readonly releasesDir: string;
  /** Builds in progress. On the same disk as `releasesDir` and `cachesDir`, because images and caches are moved and linked, not copied. */
  readonly buildsDir: string;
  /** Caches that speed up a project's next build, `<project_id>/`. */
  readonly cachesDir: string;
  /** Versions of Node and of package managers, shared by all projects, none of which can write to it. Releases refer to it. */
  readonly toolsDir: string;
  readonly sandbox: Sandbox;
  /** The platform's own Node, and the package folder of its npm. */
  readonly nodeBin: string;
  readonly npmDir: string;
  /** Python 3 at a path that sandboxes see (below /usr); null if there is none. */
  readonly pythonBin: string | null;
  /** GOROOT of this machine's Go; null if there is none. */
  readonly goRoot: string | null;
  readonly languages: MachineLanguages;
  /** A project's builds run as this plus its `project_number`, like the runtime's sandboxes of the project. */
  readonly uidBase: number;
  /** Package manager settings for every build (`npm_config_registry`, `PIP_INDEX_URL`, `GOPROXY` …). Must not contain secrets. */
  readonly packageEnv: Readonly<Record<string, string>>;
  /** Replaces `packageEnv` for the platform's own npm; may contain secrets. */
  readonly ownPackageEnv?: Readonly<Record<string, string>>;
  /** Folders that these settings refer to, such as one of `PIP_FIND_LINKS`; mounted read-only at the same path. */
  readonly packageDirs: readonly string[];
  /** A certificate (PEM file) that the platform's own npm trusts in addition to the system's; sandboxes have their own. */
  readonly caFile?: string;
  /** Whether projects share installed folders in which no project's code took part. Default true. */
  readonly sharesInstalls?: boolean;
  readonly log?: Log;
  /** Largest unpacked source tree. Default 1 GiB. */
  readonly maxSourceBytes?: number;
  /** Largest image. Default 4 GiB in 500 000 files and folders. */
  readonly imageLimits?: TreeLimits;
  /** Disk that one build may take while it runs: source, dependencies, temporary files and the project's caches. Default 8 GiB. */
  readonly buildDiskBytes?: number;
  /** Largest tool cache of a project that is kept between builds; a larger one is deleted. Default 2 GiB. */
  readonly cacheLimitBytes?: number;
}

export const defaultCacheLimitBytes = 2 * 1024 ** 3;

export const defaultImageLimits: TreeLimits = { entries: 500_000, bytes: 4 * 1024 ** 3 };

export const defaultBuildDiskBytes = 8 * 1024 ** 3;

export const defaultMaxSourceBytes = 1024 * 1024 * 1024;
