/**
 * Limits of the API and of what is pushed that a client may want to know, with their units last. Semantics, "Limits". An installation
 * may have others of those that are settings: `/v1/capabilities` tells the ones in force.
 */
export const limits = {
  request_body_bytes: 256 * 1024,
  row_body_bytes: 1024 * 1024,
  request_body_depth: 32,
  url_bytes: 8 * 1024,
  projects_per_organization: 10,
  reads_per_minute: 600,
  writes_per_minute: 120,
  alerts_listed: 100,
  approvals_listed: 100,
  approvals_pending: 20,
  approval_wait_seconds: 60,
  idempotency_key_characters: 255,
  deployments_listed: 100,
  builds_listed: 100,
  backups_listed: 100,
  runs_listed: 100,
  runs_open: 5,
  command_characters: 8192,
  domains_per_project: 100,
  replicas: 8,
  log_lines: 5000,
  streams_per_token: 20,
  large_reads_per_token: 16,
  entries_listed: 500,
  table_rows: 500,
  query_characters: 65_536,
  variable_value_bytes: 32 * 1024,
  variables_bytes: 64 * 1024,
  cron_jobs_per_project: 10_000,
  cron_jobs_listed: 1000,
  cron_runs_listed: 100,
  cron_path_characters: 512,
  cron_response_bytes: 4096,
  pack_bytes: 256 * 1024 * 1024,
  tree_entries: 200_000,
  tree_bytes: 1024 * 1024 * 1024,
  build_log_bytes: 64 * 1024 * 1024,
} as const;

/** The limits in force. */
export type ApiLimits = { readonly [K in keyof typeof limits]: number };
