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
  readonly web_command: string | null;
  readonly processes: Readonly<Record<string, string>>;
  readonly release_command: string | null;
  readonly size_bytes: number;
}

export interface Tables {
  acme_account: AcmeAccountTable;
  acme_challenge: AcmeChallengeTable;
  activity: ActivityTable;
  alert: AlertTable;
  api_token: ApiTokenTable;
  approval: ApprovalTable;
  backup: BackupTable;
  backup_operation: BackupOperationTable;
  build: BuildTable;
  certificate: CertificateTable;
  certificate_mark: CertificateMarkTable;
  change: ChangeTable;
  commit_status: CommitStatusTable;
  control_plane: ControlPlaneTable;
  cron_job: CronJobTable;
  cron_run: CronRunTable;
  database_tunnel: DatabaseTunnelTable;
  deployment: DeploymentTable;
  disk_use: DiskUseTable;
  domain: DomainTable;
  domain_claim: DomainClaimTable;
  earlier_name: EarlierNameTable;
  edge: EdgeTable;
  edge_counter: EdgeCounterTable;
  follow_delivery: FollowDeliveryTable;
  idempotency_key: IdempotencyKeyTable;
  image_pruning: ImagePruningTable;
  machine: MachineTable;
  monitor_check: MonitorCheckTable;
  notification: NotificationTable;
  organization: OrganizationTable;
  page_look: PageLookTable;
  platform_fact: PlatformFactTable;
  process_setting: ProcessSettingTable;
  project: ProjectTable;
  project_database: ProjectDatabaseTable;
  project_follow: ProjectFollowTable;
  project_health: ProjectHealthTable;
  project_metric: ProjectMetricTable;
  project_purge: ProjectPurgeTable;
  project_variable: ProjectVariableTable;
  registry: RegistryTable;
  replica: ReplicaTable;
  replica_metric: ReplicaMetricTable;
  replica_usage: ReplicaUsageTable;
  restored_database: RestoredDatabaseTable;
  route_change: RouteChangeTable;
  run: RunTable;
  ssh_key: SshKeyTable;
  storage_snapshot: StorageSnapshotTable;
  webhook: WebhookTable;
  webhook_delivery: WebhookDeliveryTable;
}

export interface AcmeAccountTable {
  directory: string;
  sealed_key: Buffer;
  url: string | null;
  created_at: Generated<Timestamp>;
}

export interface AcmeChallengeTable {
  token: string;
  hostname: string;
  answer: string;
  created_at: Generated<Timestamp>;
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
  grouped: Generated<boolean>;
}

export interface AlertTable {
  id: string;
  name: string;
  machine: string;
  subject: string;
  severity: "warning" | "critical";
  summary: string;
  hint: string | null;
  opened_at: Timestamp;
  resolved_at: Timestamp | null;
  notify_at: Timestamp;
  told_severity: "warning" | "critical" | null;
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
  project_ids: string[] | null;
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
  origin: "manual" | "daily" | "final" | "release";
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
  origin: "push" | "upload" | "follow" | "redeploy";
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
  settings: Json<unknown> | null;
  runtime: string | null;
  author: string | null;
  copies_data: Generated<boolean>;
  token_id: string | null;
}

export interface CertificateTable {
  id: string;
  hostname: string;
  challenge: "http-01" | "dns-01";
  wanted: Generated<boolean>;
  status: Generated<"pending" | "issuing" | "active" | "failed">;
  detail: Generated<string>;
  failures: Generated<number>;
  next_attempt_at: Generated<Timestamp>;
  ordered_at: Timestamp | null;
  chain_pem: string | null;
  sealed_key: Buffer | null;
  not_before: Timestamp | null;
  not_after: Timestamp | null;
  lease_owner: string | null;
  lease_until: Timestamp | null;
  fence: Generated<number>;
  created_at: Generated<Timestamp>;
  steps: Generated<Json<unknown>>;
  confirmed_at: Timestamp | null;
  org_id: string | null;
  zone: string | null;
  first_issued_at: Timestamp | null;
}

export interface CertificateMarkTable {
  changes: number;
}

export interface ChangeTable {
  xid: Generated<number>;
  org_id: string;
  project_id: string | null;
  noun: string;
  at: Generated<Timestamp>;
}

export interface CommitStatusTable {
  build_id: string;
  follow_id: string;
  shown: string | null;
  failures: Generated<number>;
  next_attempt_at: Generated<Timestamp>;
}

export interface ControlPlaneTable {
  name: string;
  owner: string;
  roles: string[];
  url: string;
  seen_at: Timestamp;
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
  command: string | null;
  previous: Json<unknown> | null;
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
  grouped: Generated<boolean>;
  failures: Generated<number>;
  failing_since: Timestamp | null;
  exit_code: number | null;
}

export interface DatabaseTunnelTable {
  id: string;
  org_id: string;
  project_id: string;
  token_id: string;
  purpose: "session" | "dump" | "import";
  format: "custom" | "plain" | null;
  database_name: string | null;
  status: Generated<"waiting" | "open" | "closed">;
  role_name: string | null;
  close_reason: string | null;
  created_at: Generated<Timestamp>;
  opened_at: Timestamp | null;
  closed_at: Timestamp | null;
  alive_until: Generated<Timestamp>;
  backup_id: string | null;
}

export interface DeploymentTable {
  id: string;
  org_id: string;
  project_id: string;
  number: number;
  status: Generated<"pending" | "starting" | "active" | "retired" | "failed" | "superseded">;
  trigger: "push" | "upload" | "follow" | "redeploy" | "rollback" | "variables" | "restart";
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
  variables_changed_at: Timestamp | null;
  database_name: string | null;
  restored_variables: Json<unknown> | null;
  switching: Generated<boolean>;
  taking_over: Generated<boolean>;
}

export interface DiskUseTable {
  project_id: string;
  org_id: string;
  storage_bytes: number | null;
  measured_at: Timestamp | null;
  next_at: Timestamp;
  database_bytes: number | null;
  images_bytes: number | null;
  storage_access: Generated<"open" | "read_only">;
  database_access: Generated<"open" | "read_only" | "closed">;
  database_compacting: Generated<boolean>;
  database_ceiling_bytes: number | null;
  database_closings: Generated<number>;
  database_reopens_at: Timestamp | null;
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
  asked_at: Generated<Timestamp>;
}

export interface EarlierNameTable {
  org_id: string;
  project_id: string;
  slug: string;
  hostname: string;
  expires_at: Timestamp;
}

export interface EdgeTable {
  id: string;
  machine: string;
  kind: string;
  route_version: number;
  open_requests: Json<unknown>;
  seen_at: Timestamp;
  certificate_version: Generated<number>;
}

export interface EdgeCounterTable {
  counter: string;
  project_id: string;
  requests: number;
  classes: string[];
  bytes_in: number;
  bytes_out: number;
  latencies: string[];
  latency_sum_ms: number;
  seen_at: Generated<Timestamp>;
}

export interface FollowDeliveryTable {
  id: string;
  org_id: string;
  follow_id: string;
  source: "hook" | "manual" | "poll";
  event: string;
  status: "waiting" | "deployed" | "ignored";
  reason: string | null;
  commit: string | null;
  build_id: string | null;
  signed: boolean;
  received_at: Generated<Timestamp>;
  finished_at: Timestamp | null;
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

export interface ImagePruningTable {
  id: string;
  org_id: string;
  project_id: string;
  lease_owner: string;
  lease_until: Timestamp;
  fence: Generated<number>;
  created_at: Generated<Timestamp>;
}

export interface MachineTable {
  name: string;
  description: Json<unknown>;
  started_at: Timestamp;
  seen_at: Timestamp;
}

export interface MonitorCheckTable {
  name: string;
  machine: string;
  subject: string;
  status: "off" | "ok" | "warn" | "fail" | "unknown";
  detail: string;
  hint: string | null;
  since: Timestamp;
  bad_since: Timestamp | null;
  last_ok_at: Timestamp | null;
  checked_at: Timestamp;
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
  is_first: Generated<boolean>;
  codes_since: Generated<Timestamp>;
  codes_mailed: Generated<number>;
}

export interface PageLookTable {
  project_id: string;
  org_id: string;
  next_at: Timestamp;
  looked_at: Timestamp | null;
  http_status: number | null;
  failure: string | null;
  dns_ms: number | null;
  connect_ms: number | null;
  first_byte_ms: number | null;
  total_ms: number | null;
  tls_ms: number | null;
}

export interface PlatformFactTable {
  key: string;
  value: Json<unknown>;
  updated_at: Generated<Timestamp>;
}

export interface ProcessSettingTable {
  project_id: string;
  process: string;
  org_id: string;
  replicas: number | null;
  overlap: Generated<boolean>;
  restart_at: Timestamp | null;
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
  purged_at: Timestamp | null;
  storage_limit_bytes: number | null;
  database_limit_bytes: number | null;
  images_limit_bytes: number | null;
  root: string | null;
  watch: string[] | null;
  maintenance_since: Timestamp | null;
  maintenance_message: string | null;
  storage: Generated<boolean>;
  backups_limit_bytes: number | null;
  start_seconds: number | null;
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
  host: string | null;
  engine_version: string | null;
  failure: Json<FailureColumn> | null;
  lease_owner: string | null;
  lease_until: Timestamp | null;
  fence: Generated<number>;
  created_at: Generated<Timestamp>;
  ready_at: Timestamp | null;
}

export interface ProjectFollowTable {
  id: string;
  org_id: string;
  project_id: string;
  url: string;
  branch: string;
  provider: "github" | "gitlab" | "gitea" | "other";
  public_key: string | null;
  sealed_key: Buffer | null;
  host_keys: string | null;
  sealed_token: Buffer | null;
  sealed_secret: Buffer;
  commit: string | null;
  fetched_at: Timestamp | null;
  problem: string | null;
  failures: Generated<number>;
  status_problem: string | null;
  next_fetch_at: Generated<Timestamp>;
  lease_owner: string | null;
  lease_until: Timestamp | null;
  fence: Generated<number>;
  created_at: Generated<Timestamp>;
  updated_at: Generated<Timestamp>;
  host_key_pin: string | null;
}

export interface ProjectHealthTable {
  project_id: string;
  org_id: string;
  state: Generated<string>;
  since: Generated<Timestamp>;
  traffic: Json<unknown> | null;
}

export interface ProjectMetricTable {
  project_id: string;
  org_id: string;
  bucket_seconds: number;
  at: Timestamp;
  requests: Generated<number>;
  errors: Generated<number>;
  classes: Generated<string[]>;
  bytes_in: Generated<number>;
  bytes_out: Generated<number>;
  latencies: Generated<string[]>;
  latency_sum_ms: Generated<number>;
  looks: Generated<number>;
  failed_looks: Generated<number>;
  dns_looks: Generated<number>;
  dns_ms: Generated<number>;
  connect_ms: Generated<number>;
  first_byte_ms: Generated<number>;
  total_ms: Generated<number>;
  slowest_ms: Generated<number>;
  tls_looks: Generated<number>;
  tls_ms: Generated<number>;
}

export interface ProjectPurgeTable {
  id: string;
  org_id: string;
  project_id: string;
  status: Generated<"running" | "completed" | "failed">;
  requested_by: string;
  backup_id: string | null;
  database_id: string | null;
  problem: string | null;
  lease_owner: string | null;
  lease_until: Timestamp | null;
  fence: Generated<number>;
  created_at: Generated<Timestamp>;
  finished_at: Timestamp | null;
}

export interface ProjectVariableTable {
  org_id: string;
  project_id: string;
  key: string;
  sealed_value: Buffer;
  size_bytes: number;
  updated_at: Generated<Timestamp>;
}

export interface RegistryTable {
  org_id: string;
  host: string;
  username: string;
  sealed_password: Buffer;
  created_at: Generated<Timestamp>;
  updated_at: Generated<Timestamp>;
}

export interface ReplicaTable {
  org_id: string;
  deployment_id: string;
  ordinal: number;
  ready_attempt: Generated<number>;
  restarts: Generated<number>;
  exit_code: number | null;
  out_of_memory: Generated<boolean>;
  exited_at: Timestamp | null;
  next_start_at: Timestamp | null;
  attempt: Generated<number>;
  state: Generated<"starting" | "running" | "draining" | "exited" | "stopped">;
  machine: string | null;
  host: string | null;
  port: number | null;
  since: Generated<Timestamp>;
  process: Generated<string>;
  project_id: Generated<string>;
  crashes: Generated<number>;
}

export interface ReplicaMetricTable {
  project_id: string;
  org_id: string;
  bucket_seconds: number;
  at: Timestamp;
  ordinal: number;
  samples: Generated<number>;
  cpu_seconds: Generated<number>;
  seconds: Generated<number>;
  memory_bytes_sum: Generated<number>;
  memory_bytes_most: Generated<number>;
  processes_most: Generated<number>;
  process: Generated<string>;
}

export interface ReplicaUsageTable {
  deployment_id: string;
  ordinal: number;
  org_id: string;
  project_id: string;
  attempt: number;
  cpu_seconds: number;
  memory_bytes: number;
  processes: number;
  measured_at: Timestamp;
  process: Generated<string>;
}

export interface RestoredDatabaseTable {
  org_id: string;
  project_id: string;
  name: string;
  backup_id: string | null;
  created_at: Generated<Timestamp>;
  dropped_at: Timestamp | null;
}

export interface RouteChangeTable {
  project_id: string;
  changed_by: string;
}

export interface RunTable {
  id: string;
  org_id: string;
  project_id: string;
  number: number;
  status: Generated<"queued" | "running" | "succeeded" | "failed" | "timed_out" | "cancelled" | "interrupted">;
  deployment_id: string;
  deployment: number;
  command: string;
  timeout_seconds: number;
  requested_by: string;
  exit_code: number | null;
  cancel_requested: Generated<boolean>;
  lease_owner: string | null;
  lease_until: Timestamp | null;
  fence: Generated<number>;
  created_at: Generated<Timestamp>;
  started_at: Timestamp | null;
  finished_at: Timestamp | null;
  terminal: Generated<boolean>;
  token_id: string | null;
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

export interface StorageSnapshotTable {
  id: string;
  org_id: string;
  project_id: string;
  deployment_id: string;
  status: "copying" | "complete" | "deleted";
  bytes: number | null;
  created_at: Generated<Timestamp>;
  finished_at: Timestamp | null;
}

export interface WebhookTable {
  id: string;
  org_id: string;
  name: string;
  sealed_url: Buffer;
  host: string;
  format: "json" | "slack" | "discord" | "email";
  events: string[];
  sealed_secret: Buffer;
  hourly_limit: number;
  failures: Generated<number>;
  failing_since: Timestamp | null;
  disabled_at: Timestamp | null;
  disabled_reason: string | null;
  created_at: Generated<Timestamp>;
  confirmed: Generated<boolean>;
}

export interface WebhookDeliveryTable {
  id: Generated<string>;
  org_id: string;
  webhook_id: string;
  event: string;
  data: Json<unknown>;
  status: Generated<"queued" | "delivered" | "failed" | "dropped">;
  attempts: Generated<Json<unknown>>;
  next_attempt_at: Generated<Timestamp>;
  lease_owner: string | null;
  lease_until: Timestamp | null;
  fence: Generated<number>;
  created_at: Generated<Timestamp>;
  finished_at: Timestamp | null;
}
