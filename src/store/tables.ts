// Generated from the migrated schema by `npm run gen`. Do not edit.
import type { ColumnType } from "kysely";

type Generated<T> =
  T extends ColumnType<infer S, infer I, infer U> ? ColumnType<S, I | undefined, U> : ColumnType<T, T | undefined, T>;
type Timestamp = ColumnType<string, Date | string, Date | string>;
type Json<T> = ColumnType<T, T | string, T | string>;

/** A failure as it is kept; the port's `Failure`. */
export interface FailureColumn {
  readonly stage: "receive" | "detect" | "install" | "build" | "release" | "boot" | "health" | "switch";
  readonly code: string;
  readonly summary: string;
  readonly hint: string;
  readonly log_tail: readonly string[];
}

/** An image as it is kept; the port's `Image`. */
export interface ImageColumn {
  readonly image_ref: string;
  readonly kind: string;
  readonly web_command: string;
  readonly release_command: string | null;
  readonly size_bytes: number;
}

export interface Tables {
  activity: ActivityTable;
  api_token: ApiTokenTable;
  approval: ApprovalTable;
  backup: BackupTable;
  backup_operation: BackupOperationTable;
  build: BuildTable;
  cron_job: CronJobTable;
  cron_run: CronRunTable;
  deployment: DeploymentTable;
  domain: DomainTable;
  domain_claim: DomainClaimTable;
  idempotency_key: IdempotencyKeyTable;
  notification: NotificationTable;
  organization: OrganizationTable;
  platform_fact: PlatformFactTable;
  project: ProjectTable;
  project_database: ProjectDatabaseTable;
  project_variable: ProjectVariableTable;
  replica: ReplicaTable;
  restored_database: RestoredDatabaseTable;
  ssh_key: SshKeyTable;
}

export interface ActivityTable {
  id: string;
  org_id: string;
  project_id: string | null;
  actor_token_id: string | null;
  actor_name: string;
  action: string;
  target: string | null;
  detail: Generated<Json<Readonly<Record<string, unknown>>>>;
  created_at: Generated<Timestamp>;
}

export interface ApiTokenTable {
  id: string;
  org_id: string;
  name: string;
  role: "owner" | "member";
  platform_admin: Generated<boolean>;
  scopes: string[];
  approval_mode: Generated<boolean>;
  prefix: string;
  hash: Buffer;
  created_by: string | null;
  created_at: Generated<Timestamp>;
  last_used_at: Timestamp | null;
  expires_at: Timestamp | null;
  revoked_at: Timestamp | null;
}

export interface ApprovalTable {
  id: string;
  org_id: string;
  token_id: string;
  token_name: string;
  fingerprint: Buffer;
  route: string;
  method: string;
  path: string;
  resource: string;
  project_id: string | null;
  target: string | null;
  request: Json<unknown>;
  status: Generated<"pending" | "approved" | "denied" | "consumed" | "expired">;
  link_hash: Buffer;
  created_at: Generated<Timestamp>;
  expires_at: Timestamp;
  decided_at: Timestamp | null;
  consumed_at: Timestamp | null;
}

export interface BackupTable {
  id: string;
  org_id: string;
  project_id: string;
  status: Generated<"running" | "completed" | "failed">;
  origin: "manual" | "daily" | "final";
  storage: string | null;
  storage_key: string | null;
  size_bytes: number | null;
  sha256: string | null;
  row_counts: Json<readonly { readonly table: string; readonly rows: number }[]> | null;
  engine_version: string | null;
  problem_code: string | null;
  problem: string | null;
  verification: "verified" | "mismatch" | "failed" | null;
  comparison: Json<
    readonly { readonly table: string; readonly expected: number; readonly actual: number | null }[]
  > | null;
  verification_problem: string | null;
  verified_at: Timestamp | null;
  expired_at: Timestamp | null;
  created_at: Generated<Timestamp>;
  finished_at: Timestamp | null;
}

export interface BackupOperationTable {
  id: string;
  org_id: string;
  project_id: string;
  backup_id: string;
  kind: "backup" | "restore" | "verify";
  status: Generated<"running" | "completed" | "failed">;
  database_name: string | null;
  phase: Generated<"waiting" | "dumping" | "storing" | "checking" | "restoring" | "counting" | "cleaning">;
  bytes_done: Generated<number>;
  tables_done: Generated<number>;
  tables_total: number | null;
  attempts: Generated<number>;
  problem_code: string | null;
  problem: string | null;
  lease_owner: string | null;
  lease_until: Timestamp | null;
  fence: Generated<number>;
  created_at: Generated<Timestamp>;
  finished_at: Timestamp | null;
}

export interface BuildTable {
  id: string;
  org_id: string;
  project_id: string;
  number: number;
  status: Generated<"queued" | "running" | "succeeded" | "failed" | "cancelled" | "superseded">;
  origin: "push" | "redeploy";
  commit: string;
  branch: string;
  message: string;
  old_commit: string | null;
  requested_by: string | null;
  image_ref: string | null;
  image: Json<ImageColumn> | null;
  failure: Json<FailureColumn> | null;
  lease_owner: string | null;
  lease_until: Timestamp | null;
  fence: Generated<number>;
  created_at: Generated<Timestamp>;
  started_at: Timestamp | null;
  finished_at: Timestamp | null;
}

export interface CronJobTable {
  id: string;
  org_id: string;
  project_id: string;
  name: string;
  schedule: string;
  path: string;
  enabled: Generated<boolean>;
  next_run_at: Timestamp;
  created_at: Generated<Timestamp>;
  updated_at: Generated<Timestamp>;
}

export interface CronRunTable {
  id: string;
  org_id: string;
  project_id: string;
  job_id: string;
  deployment_id: string | null;
  trigger: "schedule" | "manual";
  scheduled_at: Timestamp;
  status: "running" | "succeeded" | "failed" | "timeout" | "skipped" | "missed" | "unknown";
  reason: string | null;
  started_at: Timestamp | null;
  finished_at: Timestamp | null;
  http_status: number | null;
  duration_ms: number | null;
  response_excerpt: string | null;
  lease_owner: string | null;
  lease_until: Timestamp | null;
}

export interface DeploymentTable {
  id: string;
  org_id: string;
  project_id: string;
  number: number;
  status: Generated<"pending" | "starting" | "active" | "retired" | "failed" | "superseded">;
  trigger: "push" | "redeploy" | "rollback" | "variables";
  build_id: string;
  commit: string;
  image_ref: string;
  image: Json<ImageColumn>;
  port: number | null;
  health_path: string | null;
  sealed_variables: Buffer;
  rolled_back_from: string | null;
  restored_from: string | null;
  failure: Json<FailureColumn> | null;
  lease_owner: string | null;
  lease_until: Timestamp | null;
  fence: Generated<number>;
  created_at: Generated<Timestamp>;
  activated_at: Timestamp | null;
  retired_at: Timestamp | null;
  finished_at: Timestamp | null;
  image_pruned_at: Timestamp | null;
}

export interface DomainTable {
  id: string;
  org_id: string;
  project_id: string;
  hostname: string;
  zone: string;
  dns_status: Generated<"pending" | "ok" | "mismatch">;
  dns_detail: string;
  txt_seen_at: Timestamp | null;
  check_begun_at: Timestamp | null;
  checked_at: Timestamp | null;
  next_check_at: Generated<Timestamp>;
  verified_at: Timestamp | null;
  lost_at: Timestamp | null;
  ssl_status: Generated<"pending" | "issuing" | "active" | "failed">;
  ssl_detail: string | null;
  ssl_next_attempt_at: Timestamp | null;
  created_at: Generated<Timestamp>;
}

export interface DomainClaimTable {
  org_id: string;
  hostname: string;
  zone: string;
  proof: string;
  held_at: Timestamp | null;
  verified_at: Timestamp | null;
  created_at: Generated<Timestamp>;
}

export interface IdempotencyKeyTable {
  org_id: string;
  token_id: string;
  key: string;
  request_hash: Buffer;
  attempt: Generated<number>;
  held_until: Timestamp;
  committed: Generated<boolean>;
  status_code: number | null;
  sealed_answer: Buffer | null;
  expires_at: Timestamp;
}

export interface NotificationTable {
  id: string;
  org_id: string | null;
  notifier: string;
  kind: string;
  sealed_message: Buffer | null;
  status: Generated<"queued" | "delivered" | "given_up">;
  attempts: Generated<number>;
  last_error: string | null;
  next_attempt_at: Generated<Timestamp>;
  expires_at: Timestamp;
  lease_owner: string | null;
  lease_until: Timestamp | null;
  fence: Generated<number>;
  created_at: Generated<Timestamp>;
  finished_at: Timestamp | null;
}

export interface OrganizationTable {
  id: string;
  slug: string;
  name: string;
  max_projects: Generated<number>;
  suspended_at: Timestamp | null;
  created_at: Generated<Timestamp>;
}

export interface PlatformFactTable {
  key: string;
  value: Json<unknown>;
  updated_at: Generated<Timestamp>;
}

export interface ProjectTable {
  id: string;
  org_id: string;
  number: ColumnType<number, never, never>;
  slug: string;
  name: string;
  hostname: string;
  port: number | null;
  health_path: string | null;
  replicas: Generated<number>;
  deploy_branch: string | null;
  sealed_cron_secret: Buffer;
  variables_changed_at: Timestamp | null;
  created_at: Generated<Timestamp>;
  updated_at: Generated<Timestamp>;
  deleted_at: Timestamp | null;
}

export interface ProjectDatabaseTable {
  id: string;
  org_id: string;
  project_id: string;
  status: Generated<"provisioning" | "ready" | "failed">;
  role_name: string;
  database_name: string;
  sealed_password: Buffer;
  port: number | null;
  socket_path: string | null;
  engine_version: string | null;
  failure: Json<FailureColumn> | null;
  lease_owner: string | null;
  lease_until: Timestamp | null;
  fence: Generated<number>;
  created_at: Generated<Timestamp>;
  ready_at: Timestamp | null;
}

export interface ProjectVariableTable {
  org_id: string;
  project_id: string;
  key: string;
  sealed_value: Buffer;
  size_bytes: number;
  updated_at: Generated<Timestamp>;
}

export interface ReplicaTable {
  org_id: string;
  deployment_id: string;
  ordinal: number;
  ready_attempt: Generated<number>;
  crashed_attempt: Generated<number>;
  restarts: Generated<number>;
  exit_code: number | null;
  out_of_memory: Generated<boolean>;
  exited_at: Timestamp | null;
  next_start_at: Timestamp | null;
}

export interface RestoredDatabaseTable {
  org_id: string;
  project_id: string;
  name: string;
  backup_id: string | null;
  created_at: Generated<Timestamp>;
  dropped_at: Timestamp | null;
}

export interface SshKeyTable {
  id: string;
  org_id: string;
  name: string;
  public_key: string;
  fingerprint: string;
  created_by: string;
  created_at: Generated<Timestamp>;
}
