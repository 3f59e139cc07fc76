/** What a process does. `git` makes it the primary control plane, which holds all that lies on a disk. */
export const roles = ["api", "git", "reconcile", "edge"] as const;
export type Role = (typeof roles)[number];
