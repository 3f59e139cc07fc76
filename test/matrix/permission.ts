import type { Things } from "../support/fixtures.ts";

/** What a row ought to allow, written down a second time and on purpose: a row that changes alone turns the matrix red. */
export interface Permission {
  readonly access: "public" | "member" | "owner" | "operator";
  readonly scope: string | null;
  /** Asked for beside it; each alone being away is refused as well. */
  readonly further_scopes?: readonly string[];
  readonly approval?: true;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: (things: Things) => string;
  /** A body that is right; none when the row takes none. */
  readonly body?: (things: Things) => unknown;
  /** What an allowed caller gets for the things of `testThings`. */
  readonly allowed: number;
  /** The path names the organization too, so operators of any organization reach the thing. */
  readonly everyOrganization?: true;
  /** What the path names; all but an organization is owned by one. */
  readonly names:
    | "project"
    | "build"
    | "key"
    | "token"
    | "backup"
    | "approval"
    | "organization"
    | "webhook"
    | "registry"
    | null;
}

export const project = ({ project: { slug } }: Things) => `/v1/projects/${slug}`;
export const inProject = (rest: string) => (things: Things) => `${project(things)}${rest}`;
export const ofProject = { access: "member", names: "project" } as const;
