import { z } from "zod";

/** A container image reference: `[host[:port]/]path[:tag][@sha256:digest]`. */
export const imageName = z
  .string()
  .max(512)
  .regex(
    /^(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::\d{1,5})?\/)?[a-z0-9][a-z0-9._/-]*(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/,
    "must be the name of an image, such as ghcr.io/acme/shop:1.4",
  );

/** A registry's host as spelled at the start of image names. Docker Hub is `docker.io`. */
export const registryHost = z
  .string()
  .max(255)
  .regex(
    /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/,
    "must be a host in lower case, such as ghcr.io or registry.example.com:5000, without https:// and without a path",
  );

/** Returns the registry that an image is pulled from. As in Docker, the first part is a host if it looks like one. */
export function registryOf(image: string): string {
  const [first = "", ...rest] = image.split("/");
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === "localhost");
  return isHost ? first.toLowerCase() : dockerHub;
}

export const dockerHub = "docker.io";
