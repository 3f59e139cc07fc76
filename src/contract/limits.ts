/** Limits of the API that a client may want to know, with their units last. Semantics, "Limits". */
export const limits = {
  request_body_bytes: 256 * 1024,
  request_body_depth: 32,
  url_bytes: 8 * 1024,
  projects_per_organization: 10,
  deployments_listed: 100,
  builds_listed: 100,
  replicas: 8,
  log_lines: 5000,
  variable_value_bytes: 32 * 1024,
  variables_bytes: 64 * 1024,
  cron_jobs_per_project: 10_000,
  cron_jobs_listed: 1000,
  cron_runs_listed: 100,
  cron_path_characters: 512,
  cron_response_bytes: 4096,
} as const;
