import { inProject, ofProject, type Permission } from "./permission.ts";

const archive = { ...ofProject, path: inProject("/database/archive"), allowed: 200 } as const;

const drills = { ...ofProject, path: inProject("/drills"), scope: "backups:read" } as const;

const branches = { ...ofProject, path: inProject("/database/branches"), scope: "database:read" } as const;
const branch = { ...branches, path: inProject("/database/branches/tried") } as const;

/** The permissions of the rows about a database's archive, which the projects of tests have none of, and of its branches. */
export const archivePermissions: Readonly<Record<string, Permission>> = {
  "backups.archive": { ...archive, scope: "backups:read", method: "GET" },
  "backups.set_archive": {
    ...{ ...archive, access: "owner", scope: "backups:write", approval: true, method: "PATCH" },
    body: () => ({ enabled: true }),
  },
  "backups.drills": { ...drills, method: "GET", allowed: 200 },
  "backups.drill": { ...drills, method: "GET", path: inProject("/drills/bop_none"), allowed: 404 },
  "backups.run_drill": { ...drills, scope: "backups:write", method: "POST", allowed: 409 },
  "branches.list": { ...branches, method: "GET", allowed: 200 },
  "branches.get": { ...branch, method: "GET", allowed: 200 },
  "branches.create": {
    ...{ ...branches, scope: "database:write", approval: true, method: "POST" },
    ...{ body: () => ({ name: "tried" }), allowed: 409 },
  },
  "branches.delete": { ...branch, scope: "database:write", approval: true, method: "DELETE", allowed: 204 },
};
