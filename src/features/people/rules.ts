import type { Role } from "../../contract/access.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** How long an invitation's link works. */
export const inviteMs = 7 * dayMs;

/** A session ends after this long without use … */
export const idleMs = 7 * dayMs;

/** … and this long after its start. */
export const sessionMs = 30 * dayMs;

/** How long a proof that the person is there counts. */
const freshMs = 10 * 60_000;

/** Returns whether this moment is recent enough for what needs a fresh proof. */
export function isRecent(at: Date | string | null): boolean {
  return at !== null && new Date(at).getTime() > Date.now() - freshMs;
}

/** The least rights that a token granted and that its creator still has. */
export interface Narrowed {
  readonly role: Role;
  readonly project_ids: readonly string[] | null;
}

/** Returns what is left of a token's rights once the person who created it has `most`. */
export function within(granted: Narrowed, most: Narrowed): Narrowed {
  const role = granted.role === "owner" && most.role === "owner" ? "owner" : "member";
  if (most.project_ids === null) return { role, project_ids: granted.project_ids };
  const kept = granted.project_ids?.filter((id) => most.project_ids?.includes(id)) ?? most.project_ids;
  return { role, project_ids: kept };
}
