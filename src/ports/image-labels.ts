/**
 * The interface between builders of container images and container runtimes: `image_ref` is the image's id in the engine, and these labels
 * say how to run it. The image's WORKDIR is the application's folder. Its ENV holds defaults that the workload's variables override.
 */
export const imageLabels = {
  /** The project's id. It makes images of two projects differ even when their content is equal. */
  project: "berth.project",
  /** A `ContainerManifest` as JSON. */
  manifest: "berth.manifest",
} as const;

export interface ContainerManifest {
  readonly format: 1;
  /** See `Image.kind`. */
  readonly kind: string;
  /** Runs as `/bin/sh -c <web_command>` in WORKDIR, unless `uses_own_command`. Null when the image serves no requests. */
  readonly web_command: string | null;
  /** The web process is the image's own ENTRYPOINT and CMD, run without a shell. `web_command` then only displays it. */
  readonly uses_own_command: boolean;
  /** The commands of all other process types, run the same way. */
  readonly processes: Readonly<Record<string, string>>;
  readonly release_command: string | null;
  /** Where the project's persistent folder is mounted; null or absent: `/storage`. */
  readonly storage?: string | null;
}
