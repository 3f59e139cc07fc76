import type { Permission } from "./permission.ts";

const operator = { access: "operator", names: null, scope: "platform:read", method: "GET", allowed: 200 } as const;
// The platform in tests has one machine, so changes of machines conflict.
const changesMachines = { ...operator, scope: "deployments:write", allowed: 409 } as const;

/** The permissions of the operator's rows about the platform. */
export const platformPermissions: Readonly<Record<string, Permission>> = {
  "status.get": { ...operator, path: () => "/v1/status" },
  "alerts.list": { ...operator, path: () => "/v1/alerts?all=true" },
  "platform.machines": { ...operator, path: () => "/v1/platform/machines" },
  "platform.versions": { ...operator, path: () => "/v1/platform/versions" },
  "platform.backups": { ...operator, path: () => "/v1/platform/backups" },
  // Another one is under way.
  "platform.back_up": { ...changesMachines, method: "POST", path: () => "/v1/platform/backups" },
  // The platforms of tests run from a clone.
  "platform.upgrade": {
    ...changesMachines,
    approval: true,
    method: "POST",
    path: () => "/v1/platform/upgrade",
    body: () => ({}),
  },
  "platform.finalize": {
    ...{ ...changesMachines, approval: true, method: "POST", path: () => "/v1/platform/finalize" },
    allowed: 200,
  },
  "platform.join": { ...changesMachines, approval: true, method: "POST", path: () => "/v1/platform/machines" },
  "platform.drain": {
    ...changesMachines,
    method: "PUT",
    path: () => "/v1/platform/machines/one",
    body: () => ({ takes_replicas: false }),
  },
  "platform.dismiss": { ...changesMachines, approval: true, method: "DELETE", path: () => "/v1/platform/machines/one" },
  "platform.metrics": { ...operator, path: () => "/v1/platform/metrics?range=24h" },
  "platform.overview": { ...operator, path: () => "/v1/platform/overview" },
};
