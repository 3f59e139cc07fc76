import { inProject, ofProject, type Permission } from "./permission.ts";

/** Permissions of the rows about the previews of a project's branches. */
export const previewPermissions: Readonly<Record<string, Permission>> = {
  "previews.list": { ...ofProject, scope: "projects:read", method: "GET", path: inProject("/previews"), allowed: 200 },
  "previews.create": {
    ...ofProject,
    scope: "deployments:write",
    method: "POST",
    path: inProject("/previews"),
    body: () => ({ branch: "feature" }),
    // The project has no previews.
    allowed: 409,
  },
  "previews.delete": {
    ...ofProject,
    scope: "projects:write",
    approval: true,
    method: "DELETE",
    path: ({ project: { slug }, preview }) => `/v1/projects/${slug}/previews/${preview}`,
    allowed: 204,
  },
  "previews.pin": {
    ...ofProject,
    scope: "projects:write",
    method: "PUT",
    path: ({ project: { slug }, preview }) => `/v1/projects/${slug}/previews/${preview}/pin`,
    allowed: 200,
  },
  "previews.unpin": {
    ...ofProject,
    scope: "projects:write",
    approval: true,
    method: "DELETE",
    path: ({ project: { slug }, preview }) => `/v1/projects/${slug}/previews/${preview}/pin`,
    allowed: 200,
  },
  "previews.comment": {
    ...ofProject,
    scope: "projects:read",
    method: "GET",
    path: ({ project: { slug }, preview }) => `/v1/projects/${slug}/previews/${preview}/comment`,
    allowed: 200,
  },
  "previews.promote": {
    ...ofProject,
    scope: "deployments:write",
    approval: true,
    method: "POST",
    path: ({ project: { slug }, preview }) => `/v1/projects/${slug}/previews/${preview}/promote`,
    // Nothing serves in the preview.
    allowed: 409,
  },
};
