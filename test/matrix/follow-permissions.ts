import { inProject, ofProject, type Permission } from "./permission.ts";

/** Permissions of the rows by which a project follows a branch in another repository. */
export const followPermissions: Readonly<Record<string, Permission>> = {
  "follow.set": {
    ...ofProject,
    access: "owner",
    scope: "projects:write",
    further_scopes: ["deployments:write"],
    approval: true,
    method: "PUT",
    path: inProject("/follow"),
    body: () => ({ url: "https://git.test/shop.git", branch: "release" }),
    allowed: 200,
  },
  "follow.get": { ...ofProject, scope: "projects:read", method: "GET", path: inProject("/follow"), allowed: 200 },
  "follow.delete": {
    ...ofProject,
    access: "owner",
    scope: "projects:write",
    approval: true,
    method: "DELETE",
    path: inProject("/follow"),
    allowed: 204,
  },
  "follow.fetch": {
    ...ofProject,
    scope: "deployments:write",
    method: "POST",
    path: inProject("/follow/fetch"),
    allowed: 201,
  },
  "follow.deliveries": {
    ...ofProject,
    scope: "deployments:read",
    method: "GET",
    path: inProject("/follow/deliveries"),
    allowed: 200,
  },
};
