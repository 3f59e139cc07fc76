/** What a process does. `git` makes it the primary control plane, which owns everything on disk. */
export const roles = ["api", "git", "reconcile", "edge"] as const;
export type Role = (typeof roles)[number];
