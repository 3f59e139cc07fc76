/** Every scope that some row requires. */
export const scopes = [
  "projects:read",
  "projects:write",
  "deployments:read",
  "deployments:write",
  "env:read",
  "env:write",
  "domains:read",
  "domains:write",
  "cron:read",
  "cron:write",
  "database:read",
  "database:write",
  "data:read",
  "data:write",
  "backups:read",
  "backups:write",
  "logs:read",
  "metrics:read",
  "activity:read",
  "tokens:read",
  "tokens:write",
  "ssh-keys:read",
  "ssh-keys:write",
  "webhooks:read",
  "webhooks:write",
  "registries:read",
  "registries:write",
  "orgs:read",
  "orgs:write",
  "approvals:read",
  "platform:read",
] as const;
export type Scope = (typeof scopes)[number];

/** Returns the texts that are scopes. A token made by another version may have scopes that this one lacks. */
export function knownScopes(texts: readonly string[]): Scope[] {
  return scopes.filter((scope) => texts.includes(scope));
}

/** Who may call a row: anyone, any token of an organization, an owner's token, or the platform's operator. */
export type Access = "public" | "member" | "owner" | "operator";

export const roles = ["owner", "member"] as const;
export type Role = (typeof roles)[number];

export interface Rights {
  readonly role: Role;
  readonly platform_admin: boolean;
  readonly scopes: readonly Scope[];
  /** The projects that the token is limited to; null: all of its organization. */
  readonly project_ids: readonly string[] | null;
}

export interface Need {
  readonly access: Access;
  readonly scope: Scope | null;
  readonly further_scopes?: readonly Scope[];
  readonly names?: string | null;
  readonly within_projects?: boolean;
}

export type Refusal = "owner_only" | "operator_only" | "unlimited_only" | "insufficient_scope";

/** Returns whether a row concerns the whole organization, so that a token which is limited to projects may not call it. */
export function needsAllProjects({ access, names, within_projects }: Need): boolean {
  return access !== "public" && within_projects !== true && !["project", "build", "backup"].includes(names ?? "");
}

/** Returns why these rights don't suffice for a row, if they don't. Runs before any lookup, so a refusal reveals nothing about what exists. */
export function refusal(rights: Rights, need: Need): Refusal | undefined {
  if (need.access === "operator" && !rights.platform_admin) return "operator_only";
  if (need.access === "owner" && rights.role !== "owner" && !rights.platform_admin) return "owner_only";
  if (rights.project_ids !== null && needsAllProjects(need)) return "unlimited_only";
  if (missingScope(rights, need) !== undefined) return "insufficient_scope";
  return undefined;
}

/** Returns whether a person signed in with this token may decide a request of this row: an owner outside approval mode who may make it. */
export function mayDecide(rights: Rights & { readonly approval_mode: boolean }, need: Need): boolean {
  const isOwner = rights.role === "owner" || rights.platform_admin;
  return isOwner && !rights.approval_mode && refusal(rights, need) === undefined;
}

/** Returns the first scope that a row requires and these rights lack. */
export function missingScope(rights: Pick<Rights, "scopes">, { scope, further_scopes = [] }: Need): Scope | undefined {
  const asked = scope === null ? further_scopes : [scope, ...further_scopes];
  return asked.find((each) => !rights.scopes.includes(each));
}

/** Returns whether something is missing from rights that were there before. */
export function hasLost(before: Rights, now: Rights): boolean {
  if (before.role === "owner" && now.role !== "owner") return true;
  if (before.platform_admin && !now.platform_admin) return true;
  if (before.scopes.some((scope) => !now.scopes.includes(scope))) return true;
  const { project_ids: kept } = now;
  return kept !== null && (before.project_ids === null || before.project_ids.some((id) => !kept.includes(id)));
}
