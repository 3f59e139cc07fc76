import { tarOf } from "../support/tar.ts";
import { inProject, ofProject, type Permission } from "./permission.ts";

/** Permissions of the rows that read, change and plan a project's source. */
export const sourcePermissions: Readonly<Record<string, Permission>> = {
  "builds.source": { ...ofProject, scope: "projects:read", method: "GET", path: inProject("/source"), allowed: 200 },
  "builds.upload": {
    ...ofProject,
    scope: "deployments:write",
    method: "PUT",
    path: inProject("/source"),
    body: () => tarOf({ path: "index.html", text: "hello" }),
    allowed: 201,
  },
  "builds.change": {
    ...ofProject,
    scope: "deployments:write",
    method: "PATCH",
    path: inProject("/source"),
    body: () => ({ files: [{ path: "index.html", text: "hello" }] }),
    allowed: 201,
  },
  "builds.plan": {
    ...ofProject,
    scope: "deployments:read",
    method: "POST",
    path: inProject("/plan"),
    body: () => ({ files: [{ path: "index.html", text: "hello" }] }),
    allowed: 200,
  },
  "builds.plan-upload": {
    ...ofProject,
    scope: "deployments:read",
    method: "PUT",
    path: inProject("/plan"),
    body: () => tarOf({ path: "index.html", text: "hello" }),
    allowed: 200,
  },
};
