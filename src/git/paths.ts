import type { GitPath } from "./gate.ts";

// A slug as defined in semantics: lower-case letters, digits and inner hyphens, at most 40 characters.
const slug = "[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?";
const repository = `(?<organization>${slug})/(?<project>${slug})\\.git`;

const sshCommand = new RegExp(`^(?<service>git-upload-pack|git-receive-pack) '/?${repository}'$`);
const httpPath = new RegExp(`^/git/${repository}/(?<endpoint>.*)$`);

/** The two services of git; the first reads, the second writes. */
export type GitService = "git-upload-pack" | "git-receive-pack";

export interface SshRequest {
  readonly service: GitService;
  readonly path: GitPath;
}

/** Parses the command of an SSH session: one of two verbs and one quoted path. Returns null for anything else, including `~`. */
export function parseSshCommand(command: string): SshRequest | null {
  const groups = sshCommand.exec(command)?.groups;
  return groups ? { service: groups["service"] as GitService, path: toPath(groups) } : null;
}

export type HttpRequest =
  | { readonly kind: "advertise" | "call"; readonly service: GitService; readonly path: GitPath }
  /** A path in a repository that is not one of the three endpoints of the smart protocol. */
  | { readonly kind: "dumb" }
  | { readonly kind: "unknown" };

export function parseHttpRequest(method: string, url: string): HttpRequest {
  const [pathname = "", query = ""] = url.split("?", 2);
  const groups = httpPath.exec(pathname)?.groups;
  if (!groups) return { kind: "unknown" };
  const path = toPath(groups);
  const endpoint = groups["endpoint"] as string;
  if (method === "POST" && isService(endpoint)) return { kind: "call", service: endpoint, path };
  const service = new URLSearchParams(query).get("service") ?? "";
  if (method === "GET" && endpoint === "info/refs" && isService(service)) return { kind: "advertise", service, path };
  return { kind: "dumb" };
}

/** Returns a client's `GIT_PROTOCOL` if it consists only of `key` and `key=value` joined by colons, else null. */
export function safeProtocol(value: string | undefined): string | null {
  return value !== undefined &&
    /^[a-z0-9]+(?:=[a-z0-9.]+)?(?::[a-z0-9]+(?:=[a-z0-9.]+)?){0,4}$/.test(value) &&
    value.length <= 64
    ? value
    : null;
}

function toPath(groups: Readonly<Record<string, string>>): GitPath {
  return { organization_slug: groups["organization"] as string, project_slug: groups["project"] as string };
}

function isService(text: string): text is GitService {
  return text === "git-upload-pack" || text === "git-receive-pack";
}
