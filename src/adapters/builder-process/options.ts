import type { Log } from "../../kit/log.ts";
import type { TreeLimits } from "./release/hash-root.ts";
import type { MachineLanguages } from "./tools/machine-languages.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";

export interface ProcessBuilderOptions {
  /** Finished images, `<project_id>/<sha256 in hex>/`; shared with the runtime. */
  readonly releasesDir: string;
  /** Builds that are under way. On the same disk as `releasesDir` and `cachesDir`: images and caches are moved and linked, not copied. */
  readonly buildsDir: string;
  /** What makes the next build of a project faster, `<project_id>/`. */
  readonly cachesDir: string;
  /** Versions of Node and of package managers, shared by all projects and never written by one. Releases refer to it. */
  readonly toolsDir: string;
  readonly sandbox: Sandbox;
  /** The platform's own Node, and the package folder of its npm. */
  readonly nodeBin: string;
  readonly npmDir: string;
  /** Python 3 as sandboxes see it (below /usr). Null: there is none. */
  readonly pythonBin: string | null;
  /** Go's GOROOT on this machine. Null: there is none. */
  readonly goRoot: string | null;
  readonly languages: MachineLanguages;
  /** A project's builds run as this plus its `project_number`, as the runtime's sandboxes of the project do. */
  readonly uidBase: number;
  /** Settings of package managers for every build: registries, proxies, certificates (`npm_config_registry`, `PIP_INDEX_URL`, `GOPROXY` …). Never a secret. */
  readonly packageEnv: Readonly<Record<string, string>>;
  /** What the platform's own npm gets in their place; may hold secrets. */
  readonly ownPackageEnv?: Readonly<Record<string, string>>;
  /** Folders that those settings name, such as one of `PIP_FIND_LINKS`; mounted read-only at the same path. */
  readonly packageDirs: readonly string[];
  /** A certificate (PEM file) that the platform's own npm trusts besides the system's; sandboxes have theirs. */
  readonly caFile?: string;
  /** Whether projects share installed folders that nothing of theirs took part in. Default true. */
  readonly sharesInstalls?: boolean;
  readonly log?: Log;
  /** The most a source tree may hold unpacked. Default 1 GiB. */
  readonly maxSourceBytes?: number;
  /** The most an image may hold. Default 4 GiB in 500 000 files and folders. */
  readonly imageLimits?: TreeLimits;
  /** What a project's tools may keep between builds; beyond it they begin anew. Default 2 GiB. */
  readonly cacheLimitBytes?: number;
}

export const defaultCacheLimitBytes = 2 * 1024 ** 3;

export const defaultImageLimits: TreeLimits = { entries: 500_000, bytes: 4 * 1024 ** 3 };

export const defaultMaxSourceBytes = 1024 * 1024 * 1024;
