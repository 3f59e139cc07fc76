import { inProject, ofProject, type Permission } from "./permission.ts";

/** Permissions of the rows that show what an application does: metrics, logs and requests. */
export const observationPermissions: Readonly<Record<string, Permission>> = {
  "metrics.get": { ...ofProject, scope: "metrics:read", method: "GET", path: inProject("/metrics"), allowed: 200 },
  "logs.list": {
    ...ofProject,
    scope: "logs:read",
    method: "GET",
    path: inProject("/logs?source=build&limit=5"),
    allowed: 200,
  },
  "logs.counts": {
    ...ofProject,
    scope: "logs:read",
    method: "GET",
    path: inProject("/logs/counts?since=15m&parts=10"),
    allowed: 200,
  },
  "requests.list": {
    ...ofProject,
    scope: "logs:read",
    method: "GET",
    path: inProject("/requests?status=5xx&limit=5"),
    allowed: 200,
  },
  "requests.paths": {
    ...ofProject,
    scope: "logs:read",
    method: "GET",
    path: inProject("/requests/paths?sort=slow"),
    allowed: 200,
  },
};
