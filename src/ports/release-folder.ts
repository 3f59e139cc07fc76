/**
 * The interface between builders and the process runtime: `<releases>/<project_id>/<sha256 in hex>/` holds the tree in `app/` and this
 * manifest in `image.json`. A folder without `image.json` is not a complete release. A complete release never changes.
 */
export interface ReleaseManifest {
  readonly format: 1;
  /** See `Image.kind`. */
  readonly kind: string;
  /** Runs as `/bin/sh -c <web_command>` in the tree. Null when the release serves no requests. */
  readonly web_command: string | null;
  /** The commands of all other process types. */
  readonly processes: Readonly<Record<string, string>>;
  readonly release_command: string | null;
  /** Where the project's persistent folder is mounted; absent: `/storage`. */
  readonly storage?: string;
  /** Defaults that the workload's variables override. Never holds a secret. */
  readonly env: Readonly<Record<string, string>>;
  /** Folders, as paths inside the sandbox, that precede the system's PATH. */
  readonly path: readonly string[];
  /** Toolchains, mounted read-only. */
  readonly binds: readonly ReleaseBind[];
}

export interface ReleaseBind {
  /** Relative to the data folder, or absolute. */
  readonly source: string;
  readonly target: string;
}

export const manifestName = "image.json";
export const treeName = "app";
