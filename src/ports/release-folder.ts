/**
 * What a builder leaves for the process runtime: `<releases>/<project_id>/<sha256 in hex>/` with the tree in `app/` and this, as `image.json`,
 * beside it. A folder without `image.json` is not a release (yet). Nothing in it changes afterwards.
 */
export interface ReleaseManifest {
  readonly format: 1;
  /** See `Image.kind`. */
  readonly kind: string;
  /** Run as `/bin/sh -c <web_command>` in the tree. Null: nothing serves requests. */
  readonly web_command: string | null;
  /** The same of all other process types. Releases that an earlier version built lack it. */
  readonly processes?: Readonly<Record<string, string>>;
  readonly release_command: string | null;
  /** Defaults below the workload's own variables. Never a secret. */
  readonly env: Readonly<Record<string, string>>;
  /** Folders, as seen inside, that come before the system's PATH. */
  readonly path: readonly string[];
  /** Toolchains, mounted read-only. */
  readonly binds: readonly ReleaseBind[];
}

export interface ReleaseBind {
  /** Relative to the data folder, or absolute. */
  readonly source: string;
  readonly target: string;
}

/** The name of the manifest in a release's folder. */
export const manifestName = "image.json";
/** The name of the tree in a release's folder. */
export const treeName = "app";
