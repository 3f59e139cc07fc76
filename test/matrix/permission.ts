import type { Things } from "../support/fixtures.ts";

/** The permission that a row must have. It repeats the contract on purpose, so that a change of the contract alone fails the matrix. */
export interface Permission {
  readonly access: "public" | "member" | "owner" | "operator";
  readonly scope: string | null;
  /** Further required scopes; a token that lacks one of them is refused too. */
  readonly further_scopes?: readonly string[];
  readonly approval?: true;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: (things: Things) => string;
  /** A valid body; undefined when the row takes none. */
  readonly body?: (things: Things) => unknown;
  /** The status that an allowed caller gets for the things of `testThings`. */
  readonly allowed: number;
  /** The status that a person in a session gets, where it differs from a token's. */
  readonly ofPerson?: number;
  /** The status that a member gets for the things of others. */
  readonly ofMember?: number;
  /** The status that tokens and people limited to projects get for the things of others. */
  readonly ofLimited?: number;
  /** The path contains the organization, so operators of any organization can reach the thing. */
  readonly everyOrganization?: true;
  /** The kind of thing in the path; everything but an organization belongs to an organization. */
  readonly names:
    | "project"
    | "build"
    | "key"
    | "token"
    | "member"
    | "invite"
    | "backup"
    | "approval"
    | "organization"
    | "webhook"
    | "registry"
    | null;
}

/** The rows that tokens and people limited to projects may call, although their paths name no project, build or backup. */
export const openToLimited: readonly string[] = [
  ...[
    "me.get",
    "me.sessions",
    "me.update",
    "me.passkeys",
    "me.rename_passkey",
    "me.delete_passkey",
    "me.identities",
    "me.unlink_identity",
    "me.end_sessions",
    "me.leave",
    "people.list",
    "projects.list",
    "templates.list",
    "overview.get",
    "activity.list",
    "activity.changes",
  ],
  ...["approvals.list", "approvals.get", "approvals.withdraw", "tokens.create", "ssh-keys.create"],
  ...["tokens.list", "tokens.delete", "ssh-keys.list", "ssh-keys.delete"],
];

export const project = ({ project: { slug } }: Things) => `/v1/projects/${slug}`;
export const inProject = (rest: string) => (things: Things) => `${project(things)}${rest}`;
export const ofProject = { access: "member", names: "project" } as const;
