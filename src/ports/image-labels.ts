/**
 * What a builder of container images leaves for a runtime of containers: `image_ref` is the image's id in the engine, and these labels say
 * how it runs. The image's WORKDIR is the application's folder; its ENV holds defaults below the workload's own variables.
 */
export const imageLabels = {
  /** The project's id: equal content of two projects gives two images. */
  project: "berth.project",
  /** A `ContainerManifest` as JSON. */
  manifest: "berth.manifest",
} as const;

export interface ContainerManifest {
  readonly format: 1;
  /** See `Image.kind`. */
  readonly kind: string;
  /** Run as `/bin/sh -c <web_command>` in WORKDIR, unless `uses_own_command`. Null: nothing serves requests. */
  readonly web_command: string | null;
  /** The web process is the image's own ENTRYPOINT and CMD, without a shell; `web_command` is its text for people. */
  readonly uses_own_command: boolean;
  /** The same of all other process types. */
  readonly processes: Readonly<Record<string, string>>;
  readonly release_command: string | null;
}
