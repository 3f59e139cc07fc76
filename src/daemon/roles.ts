import { flag, optional, setting, shown } from "./settings.ts";

/** What a process does. `git` makes it the primary control plane, which owns everything on disk. */
export const roles = ["api", "git", "reconcile", "edge"] as const;
export type Role = (typeof roles)[number];

export const roleSettings = {
  roles: setting("BERTH_ROLES", roles.join(","), readRoles).means(
    "What this process does, like `berthd start --roles=…`: `api`, `git`, `reconcile`, `edge`. `git` needs `api` and `reconcile`; a process without it needs BERTH_DATABASE_URL.",
  ),
  privateUrl: optional("BERTH_PRIVATE_URL").means(
    "Where other processes on the same database reach this one's control port, such as `http://10.0.0.5:4000`; made of BERTH_LISTEN and BERTH_HTTP_PORT when unset.",
  ),
  replacePrimary: flag("BERTH_REPLACE_PRIMARY", false).means(
    "Become the primary although another data folder is registered as the primary. Set it for one start, after that folder is lost.",
  ),
};

function readRoles(text: string | undefined): readonly Role[] {
  const given = (text ?? roles.join(",")).split(",").map((name) => name.trim());
  if (given.some((name) => !(roles as readonly string[]).includes(name)))
    throw new Error(`BERTH_ROLES must be of the roles ${roles.join(", ")}, separated by commas, not ${shown(text)}.`);
  const chosen = roles.filter((role) => given.includes(role));
  if (chosen.includes("git") && !(chosen.includes("api") && chosen.includes("reconcile")))
    throw new Error("BERTH_ROLES: git also needs api and reconcile, because all three use the same data folder.");
  return chosen;
}
