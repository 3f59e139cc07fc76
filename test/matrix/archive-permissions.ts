import { inProject, ofProject, type Permission } from "./permission.ts";

const archive = { ...ofProject, path: inProject("/database/archive"), allowed: 200 } as const;

const drills = { ...ofProject, path: inProject("/drills"), scope: "backups:read" } as const;

/** The permissions of the rows about a database's archive. The projects of tests have none. */
export const archivePermissions: Readonly<Record<string, Permission>> = {
  "backups.archive": { ...archive, scope: "backups:read", method: "GET" },
  "backups.set_archive": {
    ...{ ...archive, access: "owner", scope: "backups:write", approval: true, method: "PATCH" },
    body: () => ({ enabled: true }),
  },
  "backups.drills": { ...drills, method: "GET", allowed: 200 },
  "backups.drill": { ...drills, method: "GET", path: inProject("/drills/bop_none"), allowed: 404 },
  "backups.run_drill": { ...drills, scope: "backups:write", method: "POST", allowed: 409 },
};
