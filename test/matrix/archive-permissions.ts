import { inProject, ofProject, type Permission } from "./permission.ts";

const archive = { ...ofProject, path: inProject("/database/archive"), allowed: 200 } as const;

/** The permissions of the rows about a database's archive. */
export const archivePermissions: Readonly<Record<string, Permission>> = {
  "backups.archive": { ...archive, scope: "backups:read", method: "GET" },
  "backups.set_archive": {
    ...{ ...archive, access: "owner", scope: "backups:write", approval: true, method: "PATCH" },
    body: () => ({ enabled: true }),
  },
};
