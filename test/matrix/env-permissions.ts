import { inProject, ofProject, type Permission } from "./permission.ts";

const changes = { ...ofProject, scope: "env:write" } as const;
const one = inProject("/env/COLOUR");

/** The permissions of the rows about variables. */
export const envPermissions: Readonly<Record<string, Permission>> = {
  "env.list": { ...ofProject, scope: "env:read", method: "GET", path: inProject("/env"), allowed: 200 },
  "env.set": { ...changes, method: "PUT", path: one, body: () => ({ value: "blue" }), allowed: 204 },
  "env.import": { ...changes, method: "PATCH", path: inProject("/env"), body: () => ({ file: "A=b" }), allowed: 200 },
  "env.delete": { ...changes, approval: true, method: "DELETE", path: one, allowed: 204 },
};
