/** The part of a release that is not its files: how to run them. Kept beside them as `image.json`. */
export interface ReleaseManifest {
  readonly kind: string;
  readonly web_command: string;
  readonly release_command: string | null;
  /** Mounted read-only in the sandbox. */
  readonly binds: readonly { readonly source: string; readonly target: string }[];
  /** Folders of the sandbox put before the system's PATH. */
  readonly path: readonly string[];
  /** Beneath the workload's own environment. */
  readonly env: Readonly<Record<string, string>>;
}
