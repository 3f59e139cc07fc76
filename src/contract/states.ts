/** The states of every state machine with their allowed transitions. No other transition happens. */
export const buildStates = {
  queued: ["running", "superseded", "cancelled", "failed"],
  running: ["succeeded", "failed", "cancelled"],
  succeeded: [],
  failed: [],
  cancelled: [],
  superseded: [],
} as const;

export const deploymentStates = {
  pending: ["starting", "superseded", "failed"],
  starting: ["active", "failed", "superseded"],
  active: ["retired"],
  retired: [],
  failed: [],
  superseded: [],
} as const;

export const databaseStates = {
  provisioning: ["ready", "failed"],
  ready: ["failed"],
  failed: ["provisioning", "ready"],
} as const;

export const cronRunStates = {
  running: ["succeeded", "failed", "timeout", "skipped", "missed", "unknown"],
  succeeded: [],
  failed: [],
  timeout: [],
  skipped: [],
  missed: [],
  unknown: [],
} as const;

/** Whether a hostname's DNS records point here. */
export const nameStates = {
  pending: ["ok", "mismatch"],
  ok: ["pending", "mismatch"],
  mismatch: ["pending", "ok"],
} as const;

export const certificateStates = {
  pending: ["issuing"],
  issuing: ["active", "failed"],
  active: ["issuing", "failed"],
  failed: ["issuing"],
} as const;

export const branchStates = {
  copying: ["ready", "failed", "deleting"],
  ready: ["failed", "deleting"],
  failed: ["deleting"],
  deleting: [],
} as const;

export const backupStates = { running: ["completed", "failed"], completed: [], failed: [] } as const;

export const approvalStates = {
  pending: ["approved", "denied", "expired"],
  approved: ["consumed", "expired"],
  denied: [],
  consumed: [],
  expired: [],
} as const;

export type DeploymentStatus = keyof typeof deploymentStates;
export type DatabaseStatus = keyof typeof databaseStates;
export type BackupStatus = keyof typeof backupStates;
export type CertificateStatus = keyof typeof certificateStates;
export type NameStatus = keyof typeof nameStates;
export type ApprovalStatus = keyof typeof approvalStates;
export type CronRunStatus = keyof typeof cronRunStates;

/** Returns the names of a state machine's states, for a schema. */
export function statesOf<T extends Record<string, readonly string[]>>(
  machine: T,
): [keyof T & string, ...(keyof T & string)[]] {
  return Object.keys(machine) as [keyof T & string, ...(keyof T & string)[]];
}

/** Returns whether a deployment has gone live or ended otherwise. */
export function isDecided({ status }: { readonly status: DeploymentStatus }): boolean {
  return status === "active" || deploymentStates[status].length === 0;
}

/** Returns the state of a deployment as people see it. */
export function shownStatus({ status, rehearse_only }: { readonly status: string; readonly rehearse_only?: boolean }) {
  return rehearse_only === true && status === "superseded" ? "rehearsed" : status;
}

/** Triggers of deployments that come from a build, as opposed to deployments of an existing image. */
export const triggersOfBuilds = ["push", "upload", "follow", "redeploy"] as const;

export function isOfBuild(trigger: string): boolean {
  return (triggersOfBuilds as readonly string[]).includes(trigger);
}
