/** Returns the parent image of each kind of generated Dockerfile: its own setting, else the common setting, else the official image. */
export function parentImages(settings: ParentSettings): Record<ParentName, string> {
  const names = Object.keys(officialImages) as ParentName[];
  const pairs = names.map((name) => [name, settings[`${name}Image`] ?? settings.baseImage ?? officialImages[name]]);
  return Object.fromEntries(pairs) as Record<ParentName, string>;
}

/** Docker Hub's official images, by the kind of generated Dockerfile that starts from them. */
export const officialImages = {
  node: "node:24-bookworm-slim",
  python: "python:3.13-slim-bookworm",
  go: "golang:1.25-bookworm",
  rust: "rust:1-slim-bookworm",
  java: "maven:3-eclipse-temurin-21",
  ruby: "ruby:3.4-bookworm",
  php: "composer:2",
  plain: "debian:bookworm-slim",
} as const;

export type ParentName = keyof typeof officialImages;

type ParentSettings = { readonly [Name in ParentName as `${Name}Image`]: string | null } & {
  readonly baseImage: string | null;
};
