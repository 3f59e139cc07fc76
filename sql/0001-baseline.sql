-- expand
-- The schema of Berth 0.1.0: one table after the other, then the view, and the functions and triggers that record what changed.
-- Every row of a tenant carries org_id, and every query has it in its key. Rows with work to do carry a lease: which process works on
-- the row, until when, and a fence that grows with each claim, so that a worker that lost its lease can change nothing any more.

create table organization (
  id text primary key,
  slug text not null unique,
  name text not null,
  max_projects integer not null default 10 check (max_projects >= 0),
  suspended_at timestamptz,
  created_at timestamptz not null default now(),
  -- The organization of the first start belongs to the operator: its projects get the plain hostnames, and no limit of 10 projects.
  is_first boolean not null default false,
  -- Mails with a code that the organization has had since then. Here, because a webhook that is deleted must not make room for the next mail.
  codes_since timestamptz not null default now(),
  codes_mailed integer not null default 0
);
create unique index organization_is_first on organization (is_first) where is_first;

create table api_token (
  id text primary key,
  org_id text not null references organization,
  name text not null,
  role text not null check (role in ('owner', 'member')),
  platform_admin boolean not null default false,
  scopes text[] not null,
  approval_mode boolean not null default false,
  prefix text not null,
  hash bytea not null unique,
  created_by text,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  expires_at timestamptz,
  revoked_at timestamptz
);
create index api_token_of_org on api_token (org_id, created_at desc);

create table ssh_key (
  id text primary key,
  org_id text not null references organization,
  name text not null,
  public_key text not null,
  fingerprint text not null,
  created_by text not null,
  created_at timestamptz not null default now(),
  unique (org_id, fingerprint)
);
create index ssh_key_by_fingerprint on ssh_key (fingerprint);

create table project (
  id text primary key,
  org_id text not null references organization,
  -- Small and never reused: uids, ports and addresses are made from it.
  number integer generated always as identity unique,
  slug text not null,
  name text not null,
  hostname text not null,
  port integer check (port between 1 and 65535),
  health_path text,
  replicas integer not null default 1 check (replicas between 1 and 8),
  deploy_branch text,
  sealed_cron_secret bytea not null,
  -- Set when a variable changes; the releases task restarts the application two seconds after the last change.
  variables_changed_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  -- A purge deletes everything of a deleted project but its final backup. The row stays, for its activity and that backup; slug and
  -- hostname are free again.
  purged_at timestamptz,
  -- Null: the installation's limits.
  storage_limit_bytes bigint,
  database_limit_bytes bigint,
  images_limit_bytes bigint,
  -- The folder of the repository that holds the application, and the paths whose changes deploy it.
  root text,
  watch text[],
  -- Since when an application's visitors get the maintenance page, and what it says instead of the platform's own sentence.
  maintenance_since timestamptz,
  maintenance_message text,
  -- A project without storage is bound to no machine: a swarm runs its replicas anywhere.
  storage boolean not null default true,
  -- How much the project's backups may take of the local disk; null for the installation's limit.
  backups_limit_bytes bigint
);
create unique index project_of_slug on project (org_id, slug) where purged_at is null;
create unique index project_of_hostname on project (hostname) where purged_at is null;
-- The few projects whose variables changed since their deployment was made.
create index project_variables_changed on project (variables_changed_at) where variables_changed_at is not null;

create table project_variable (
  org_id text not null references organization,
  project_id text not null references project,
  key text not null,
  sealed_value bytea not null,
  size_bytes integer not null,
  updated_at timestamptz not null default now(),
  primary key (project_id, key)
);

create table build (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  number integer not null,
  status text not null default 'queued' check (status in ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'superseded')),
  origin text not null check (origin in ('push', 'upload', 'follow', 'redeploy')),
  commit text not null,
  branch text not null,
  message text not null,
  -- Of a push: what the branch pointed at before, so that a crash between activation and the ref's move can be mended.
  old_commit text,
  requested_by text,
  image_ref text,
  image jsonb,
  failure jsonb,
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  -- What the commit's berth.json says about the deployment.
  settings jsonb,
  -- The runtime that a move asked for; null: that of the project's active deployment, else the platform's first.
  runtime text,
  -- The commit's author as git names it; null where the commit names none.
  author text,
  unique (project_id, number)
);
create unique index build_one_running on build (project_id) where status = 'running';
create index build_open on build (status, created_at) where status in ('queued', 'running');
create index build_of_project on build (org_id, project_id, number desc);
create index build_failed on build (project_id, finished_at desc, id desc) where status = 'failed' and finished_at is not null;
create index build_failed_of_org on build (org_id, finished_at desc, id desc) where status = 'failed' and finished_at is not null;
create index build_leased on build (lease_until) where lease_until is not null;
create index build_by_time on build (created_at);

create table deployment (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  number integer not null,
  status text not null default 'pending' check (status in ('pending', 'starting', 'active', 'retired', 'failed', 'superseded')),
  trigger text not null check (trigger in ('push', 'upload', 'follow', 'redeploy', 'rollback', 'variables', 'restart')),
  build_id text not null references build,
  commit text not null,
  image_ref text not null,
  image jsonb not null,
  port integer,
  health_path text,
  sealed_variables bytea not null,
  -- The deployment that served before a rollback, and the one whose image and variables the rollback took.
  rolled_back_from text references deployment,
  restored_from text references deployment,
  failure jsonb,
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now(),
  activated_at timestamptz,
  retired_at timestamptz,
  finished_at timestamptz,
  -- An image that is gone can no longer be rolled back to.
  image_pruned_at timestamptz,
  -- The project's `variables_changed_at` as this was made: what it settles when it ends.
  variables_changed_at timestamptz,
  -- The database that it keeps because another one was promoted meanwhile; null: the project's live one.
  database_name text,
  -- When a rollback goes live, it makes the older deployment's variables the project's own. Until then they wait here, each sealed.
  restored_variables jsonb,
  -- A deployment on its way that edges route to already, until they confirmed it and it becomes active, or until it fails.
  switching boolean not null default false,
  -- Set while the active deployment's types that must not run twice stop, so that those of this one can start.
  taking_over boolean not null default false,
  unique (project_id, number)
);
-- Exactly one serves and at most one is on its way, whatever crashes when.
create unique index deployment_one_active on deployment (project_id) where status = 'active';
create unique index deployment_one_coming on deployment (project_id) where status in ('pending', 'starting');
create index deployment_of_project on deployment (org_id, project_id, number desc);
create index deployment_decided on deployment (project_id, finished_at desc, id desc) where finished_at is not null;
create index deployment_decided_of_org on deployment (org_id, finished_at desc, id desc) where finished_at is not null;
create index deployment_leased on deployment (lease_until) where lease_until is not null;
create index deployment_of_build on deployment (build_id);
create index deployment_by_time on deployment (created_at);
create index deployment_rolled_back_from on deployment (rolled_back_from) where rolled_back_from is not null;
create index deployment_restored_from on deployment (restored_from) where restored_from is not null;
create index deployment_pushed on deployment (project_id, number desc) where trigger in ('push', 'upload', 'follow') and activated_at is not null;
-- The newest deployment of an image, for pruning images.
create index deployment_of_image on deployment (project_id, image_ref, number desc);

-- What is known of a deployment's replicas: which start of each passed its health check (only that one gets traffic),
-- and its crashes, so that back-off survives a restart of the control plane.
create table replica (
  org_id text not null references organization,
  deployment_id text not null references deployment,
  ordinal integer not null,
  ready_attempt integer not null default 0,
  restarts integer not null default 0,
  exit_code integer,
  out_of_memory boolean not null default false,
  exited_at timestamptz,
  next_start_at timestamptz,
  -- The newest start; the runtime gets the number from here.
  attempt integer not null default 0,
  state text not null default 'stopped' check (state in ('starting', 'running', 'draining', 'exited', 'stopped')),
  machine text,
  -- Where edges and cron calls reach it, while it runs.
  host text,
  port integer,
  since timestamptz not null default now(),
  -- The process type, a line of the Procfile. Only `web` has routes.
  process text not null default 'web',
  -- For the index below. A trigger writes it; the default lets inserts leave it out.
  project_id text not null default '',
  primary key (deployment_id, process, ordinal)
);
create index replica_present on replica (machine) where state <> 'stopped';
create index replica_draining on replica (deployment_id) where state = 'draining';
create index replica_of_project on replica (project_id) where state <> 'stopped';

create table project_database (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project unique,
  status text not null default 'provisioning' check (status in ('provisioning', 'ready', 'failed')),
  role_name text not null,
  database_name text not null,
  sealed_password bytea not null,
  -- Where the database listens, in libpq's words: a name, an address, or the folder of its Unix socket, which the port names.
  port integer,
  host text,
  engine_version text,
  failure jsonb,
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now(),
  ready_at timestamptz
);

create table activity (
  id text primary key,
  org_id text not null references organization,
  project_id text references project,
  -- Null when the platform itself acted (a crash, a restart).
  actor_token_id text,
  actor_name text not null,
  action text not null,
  target text,
  detail jsonb not null default '{}',
  created_at timestamptz not null default now()
);
create index activity_of_org on activity (org_id, id desc);
create index activity_of_project on activity (project_id, id desc);
-- What happened, newest first, is read from here and from the rows that tell it themselves.
create index activity_of_org_by_time on activity (org_id, created_at desc, id desc);
create index activity_of_project_by_time on activity (project_id, created_at desc, id desc);
create index activity_crashed on activity (created_at) where action in ('replica.crashed', 'replica.out_of_memory');
-- Old history is found without reading all of it.
create index activity_by_time on activity (created_at);

-- Facts about the platform itself, such as whether the first start was completed.
create table platform_fact (
  key text primary key,
  value jsonb not null,
  updated_at timestamptz not null default now()
);

-- Hostnames of users. One project has a hostname at a time, over all organizations.
create table domain (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  hostname text not null unique,
  -- The part that was registered: `example.com` of `www.example.com`.
  zone text not null,
  dns_status text not null default 'pending' check (dns_status in ('pending', 'ok', 'mismatch')),
  dns_detail text not null,
  -- When the TXT record with this organization's proof was last seen.
  txt_seen_at timestamptz,
  check_begun_at timestamptz,
  checked_at timestamptz,
  next_check_at timestamptz not null default now(),
  -- Set while the name is served; the edge's routes are made from it.
  verified_at timestamptz,
  -- Since when a served name leads elsewhere.
  lost_at timestamptz,
  created_at timestamptz not null default now()
);
create index domain_of_project on domain (org_id, project_id, id desc);
create index domain_due on domain (next_check_at);
create index domain_served on domain (project_id) where verified_at is not null;

-- What an organization has to do with a hostname: the text that proves its control over the zone, and whether it ever had the
-- name. It outlives the attachment, so that a name whose records still lead here is not simply the next one's.
create table domain_claim (
  org_id text not null references organization,
  hostname text not null,
  zone text not null,
  proof text not null,
  held_at timestamptz,
  verified_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (org_id, hostname)
);
create index domain_claim_held on domain_claim (hostname) where held_at is not null;
create index domain_claim_verified on domain_claim (zone) where verified_at is not null;

-- Cron jobs and their runs. A run's row is written before anything is called: the unique key of job and due minute is what
-- makes a second delivery impossible, whatever crashes and however many schedulers there are.
create table cron_job (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  name text not null,
  schedule text not null,
  path text not null,
  enabled boolean not null default true,
  -- The first due minute that no scheduler has dealt with yet; of disabled jobs too, whose minutes become skipped runs.
  next_run_at timestamptz not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (project_id, name)
);
create index cron_job_due on cron_job (next_run_at);
create index cron_job_of_project on cron_job (org_id, project_id, id desc);

-- `running` without `started_at` waits for a free place and may still be taken over; with it, the call may have been made.
create table cron_run (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  job_id text not null references cron_job on delete cascade,
  deployment_id text,
  trigger text not null check (trigger in ('schedule', 'manual')),
  scheduled_at timestamptz not null,
  status text not null check (status in ('running', 'succeeded', 'failed', 'timeout', 'skipped', 'missed', 'unknown')),
  reason text,
  started_at timestamptz,
  finished_at timestamptz,
  http_status integer,
  duration_ms integer,
  response_excerpt text,
  lease_owner text,
  lease_until timestamptz
);
create unique index cron_run_once on cron_run (job_id, scheduled_at) where trigger = 'schedule';
create index cron_run_of_job on cron_run (job_id, scheduled_at desc, id desc);
create index cron_run_open on cron_run (job_id) where status = 'running';
create index cron_run_leased on cron_run (lease_owner) where lease_owner is not null;
create index cron_run_failed on cron_run (project_id, finished_at desc, id desc) where status in ('failed', 'timeout', 'unknown') and finished_at is not null;
create index cron_run_failed_of_org on cron_run (org_id, finished_at desc, id desc) where status in ('failed', 'timeout', 'unknown') and finished_at is not null;

-- Backups, the work on them, and the databases that were restored from them.
create table backup (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  status text not null default 'running' check (status in ('running', 'completed', 'failed')),
  -- Requested, on schedule, or before a project is deleted for good.
  origin text not null check (origin in ('manual', 'daily', 'final')),
  -- Where its file is: the name of a storage and the key in it. Set before the first byte is written.
  storage text,
  storage_key text,
  size_bytes bigint,
  sha256 text,
  row_counts jsonb,
  engine_version text,
  problem_code text,
  problem text,
  -- Of the last verification that ended.
  verification text check (verification in ('verified', 'mismatch', 'failed')),
  comparison jsonb,
  verification_problem text,
  verified_at timestamptz,
  -- Retention has chosen it: it is shown no more, and deleted with its file.
  expired_at timestamptz,
  created_at timestamptz not null default now(),
  finished_at timestamptz
);
create index backup_of_project on backup (org_id, project_id, id desc);

-- Making, restoring or verifying a backup. Databases that it makes carry a name of its own, so that the process that
-- takes it over after a crash knows what to drop.
create table backup_operation (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  backup_id text not null references backup on delete cascade,
  kind text not null check (kind in ('backup', 'restore', 'verify')),
  status text not null default 'running' check (status in ('running', 'completed', 'failed')),
  database_name text,
  phase text not null default 'waiting' check (phase in ('waiting', 'dumping', 'storing', 'checking', 'restoring', 'counting', 'cleaning')),
  bytes_done bigint not null default 0,
  tables_done integer not null default 0,
  tables_total integer,
  attempts integer not null default 0,
  problem_code text,
  problem text,
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now(),
  finished_at timestamptz
);
-- One at a time, whatever starts when.
create unique index backup_operation_one_running on backup_operation (project_id) where status = 'running';
create index backup_operation_open on backup_operation (created_at) where status = 'running';
create index backup_operation_of_backup on backup_operation (backup_id);
-- Asked for every second; finished operations stay as long as their backups.
create index backup_operation_leased on backup_operation (lease_until) where lease_until is not null;

-- Further databases in a project's instance. A promoted one is what project_database names, and the one before it stands here.
create table restored_database (
  org_id text not null references organization,
  project_id text not null references project,
  name text not null,
  -- Null for the database that the project had first.
  backup_id text,
  created_at timestamptz not null default now(),
  -- Not shown any more; the backups task drops it.
  dropped_at timestamptz,
  primary key (project_id, name)
);

-- Requests of tokens in approval mode that wait for a human, and messages that leave by the operator's channels.
create table approval (
  id text primary key,
  org_id text not null references organization,
  token_id text not null references api_token,
  token_name text not null,
  -- SHA-256 of what exactly was asked for: the same request finds its approval again, another one does not.
  fingerprint bytea not null,
  route text not null,
  method text not null,
  path text not null,
  -- The ids of what the request is about, which names in a path may outlive.
  resource text not null,
  project_id text references project,
  target text,
  -- The body and what the handler noted, cut, for the page of the decision. Never sent anywhere.
  request jsonb not null,
  status text not null default 'pending' check (status in ('pending', 'approved', 'denied', 'consumed', 'expired')),
  -- SHA-256 of the link's 256 random bits; the link itself is not stored.
  link_hash bytea not null unique,
  created_at timestamptz not null default now(),
  -- Of the present state: of a pending request 24 hours, of an approved one an hour.
  expires_at timestamptz not null,
  decided_at timestamptz,
  consumed_at timestamptz
);
-- One answer at a time for one request, however often it is sent.
create unique index approval_open on approval (token_id, fingerprint) where status in ('pending', 'approved');
create index approval_of_org on approval (org_id, id desc);
create index approval_ending on approval (expires_at) where status in ('pending', 'approved');
create index approval_denied on approval (token_id, route, resource, decided_at) where status = 'denied';
create index approval_ended on approval (created_at) where status not in ('pending', 'approved');

-- One message for one of the operator's channels. Its text may hold a link that decides, so it is sealed, and erased once delivered.
create table notification (
  id text primary key,
  -- Null for messages about the platform itself.
  org_id text references organization,
  notifier text not null,
  kind text not null,
  sealed_message bytea,
  status text not null default 'queued' check (status in ('queued', 'delivered', 'given_up')),
  attempts integer not null default 0,
  last_error text,
  next_attempt_at timestamptz not null default now(),
  -- After this the message is of no use.
  expires_at timestamptz not null,
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now(),
  finished_at timestamptz
);
create index notification_due on notification (next_attempt_at) where status = 'queued';
create index notification_leased on notification (lease_until) where lease_until is not null;
create index notification_ended on notification (finished_at) where status <> 'queued';
-- The check of notifiers must not read delivered messages.
create index notification_given_up on notification (finished_at) where status = 'given_up';

-- Writes that carry an Idempotency-Key, for a day. A row without an answer is a request under way.
create table idempotency_key (
  org_id text not null references organization,
  token_id text not null references api_token,
  key text not null,
  -- SHA-256 of the request that the key came with first.
  request_hash bytea not null,
  -- Who works on it: a request that was given up and comes back late finds another number here.
  attempt integer not null default 1,
  -- Until then the request is taken to be under way.
  held_until timestamptz not null,
  -- The change is committed but what came of it is not known yet: it must not be done again.
  committed boolean not null default false,
  status_code integer,
  -- Answers may hold a new token's text, so they are sealed.
  sealed_answer bytea,
  expires_at timestamptz not null,
  primary key (token_id, key)
);
create index idempotency_key_ending on idempotency_key (expires_at);

-- The last counts seen of each counter of an edge. With them an increase is counted once, however many processes read it.
create table edge_counter (
  counter text not null,
  project_id text not null references project on delete cascade,
  requests bigint not null,
  -- By first digit of the status, 1 to 5.
  classes bigint[] not null,
  bytes_in bigint not null,
  bytes_out bigint not null,
  -- Not cumulative: one count a bucket of the port's bounds, and one beyond them.
  latencies bigint[] not null,
  latency_sum_ms double precision not null,
  seen_at timestamptz not null default now(),
  primary key (counter, project_id)
);
create index edge_counter_seen on edge_counter (seen_at);

create table project_metric (
  project_id text not null references project on delete cascade,
  org_id text not null references organization,
  -- 60, 900 or 3600.
  bucket_seconds integer not null,
  at timestamptz not null,
  requests bigint not null default 0,
  -- Answers with 500 or above.
  errors bigint not null default 0,
  classes bigint[] not null default '{0,0,0,0,0}',
  bytes_in bigint not null default 0,
  bytes_out bigint not null default 0,
  latencies bigint[] not null default '{}',
  latency_sum_ms double precision not null default 0,
  -- Looks at the first page; times are sums over those that got an answer.
  looks integer not null default 0,
  failed_looks integer not null default 0,
  dns_looks integer not null default 0,
  dns_ms double precision not null default 0,
  connect_ms double precision not null default 0,
  first_byte_ms double precision not null default 0,
  total_ms double precision not null default 0,
  slowest_ms double precision not null default 0,
  tls_looks integer not null default 0,
  tls_ms double precision not null default 0,
  primary key (project_id, bucket_seconds, at)
) with (fillfactor=70);
create index project_metric_old on project_metric (bucket_seconds, at);
create index project_metric_of_org on project_metric (org_id, bucket_seconds, at);

-- The newest measurement of each replica. CPU seconds count from the start of the attempt.
create table replica_usage (
  deployment_id text not null references deployment on delete cascade,
  ordinal integer not null,
  org_id text not null references organization,
  project_id text not null references project on delete cascade,
  attempt integer not null,
  cpu_seconds double precision not null,
  memory_bytes bigint not null,
  processes integer not null,
  measured_at timestamptz not null,
  process text not null default 'web',
  primary key (deployment_id, process, ordinal)
) with (fillfactor=70);
create index replica_usage_of_project on replica_usage (project_id);

create table replica_metric (
  project_id text not null references project on delete cascade,
  org_id text not null references organization,
  -- 60, 900 or 3600.
  bucket_seconds integer not null,
  at timestamptz not null,
  ordinal integer not null,
  samples integer not null default 0,
  -- Processor time, and the time in which it was used.
  cpu_seconds double precision not null default 0,
  seconds double precision not null default 0,
  memory_bytes_sum double precision not null default 0,
  memory_bytes_most bigint not null default 0,
  processes_most integer not null default 0,
  process text not null default 'web',
  primary key (project_id, bucket_seconds, at, process, ordinal)
) with (fillfactor=70);
create index replica_metric_old on replica_metric (bucket_seconds, at);

-- The newest look at each application's first page, and when the next is due.
create table page_look (
  project_id text primary key references project on delete cascade,
  org_id text not null references organization,
  next_at timestamptz not null,
  looked_at timestamptz,
  http_status integer,
  failure text,
  dns_ms double precision,
  connect_ms double precision,
  first_byte_ms double precision,
  total_ms double precision,
  -- The TLS handshake, where the page is served over HTTPS.
  tls_ms double precision
) with (fillfactor=70);
create index page_look_due on page_look (next_at);

-- What each project takes of the disk, when to measure it again, and what follows from it.
create table disk_use (
  project_id text primary key references project on delete cascade,
  org_id text not null references organization,
  storage_bytes bigint,
  measured_at timestamptz,
  next_at timestamptz not null,
  database_bytes bigint,
  images_bytes bigint,
  storage_access text not null default 'open' check (storage_access in ('open', 'read_only')),
  database_access text not null default 'open' check (database_access in ('open', 'read_only', 'closed')),
  database_compacting boolean not null default false,
  database_ceiling_bytes bigint,
  database_closings integer not null default 0,
  database_reopens_at timestamptz
);
create index disk_use_due on disk_use (next_at);

-- One row for each thing that is watched: a whole check (subject '') or one of its subjects that is not as it ought to be.
create table monitor_check (
  name text not null,
  -- The machine that was looked at; '' for what all machines share.
  machine text not null,
  subject text not null,
  status text not null check (status in ('off', 'ok', 'warn', 'fail', 'unknown')),
  detail text not null,
  hint text,
  -- Of the present status.
  since timestamptz not null,
  -- When it stopped being ok; null while it is.
  bad_since timestamptz,
  last_ok_at timestamptz,
  checked_at timestamptz not null,
  primary key (name, machine, subject)
);

create table alert (
  id text primary key,
  name text not null,
  machine text not null,
  subject text not null,
  severity text not null check (severity in ('warning', 'critical')),
  summary text not null,
  hint text,
  opened_at timestamptz not null,
  resolved_at timestamptz,
  -- Not told before this: an alert that comes back soon after it was resolved is told late, or not at all.
  notify_at timestamptz not null,
  -- The severity that the operator was last told of.
  told_severity text check (told_severity in ('warning', 'critical'))
);
-- Several control planes watch at once; one alert comes of it.
create unique index alert_open on alert (name, machine, subject) where resolved_at is null;
create index alert_listed on alert (id desc);
create index alert_resolved on alert (name, machine, subject, resolved_at desc) where resolved_at is not null;
create index alert_old on alert (resolved_at) where resolved_at is not null;

-- The machines that a control plane runs on, as each of them describes itself.
create table machine (
  name text primary key,
  description jsonb not null,
  started_at timestamptz not null,
  seen_at timestamptz not null
);

create table project_purge (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  status text not null default 'running' check (status in ('running', 'completed', 'failed')),
  requested_by text not null,
  -- The final backup; null without a database.
  backup_id text references backup on delete set null,
  -- Remembered when its row goes, because its files go later.
  database_id text,
  problem text,
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now(),
  finished_at timestamptz
);
create unique index project_purge_running on project_purge (project_id) where status = 'running';
create index project_purge_leased on project_purge (lease_until) where lease_until is not null;

-- Which projects' routes changed, and by which transaction: an edge reads those that its last snapshot did not show.
create table route_change (
  project_id text primary key,
  changed_by xid8 not null
);
create index route_change_order on route_change (changed_by);

-- The edges, and what each serves by. Live are those seen in the last 10 seconds.
create table edge (
  id text primary key,
  machine text not null,
  kind text not null,
  route_version bigint not null,
  -- Requests and tunnels that are open to draining replicas, by host:port.
  open_requests jsonb not null,
  seen_at timestamptz not null,
  -- Of the certificates that it serves with, confirmed as its routes are.
  certificate_version bigint not null default 0
);

-- What changed for an organization, for streams that tell pages and agents to look again. Rows live for an hour.
-- A reader goes on by transaction: below the oldest one that still runs, nothing can appear any more.
create table change (
  xid bigint not null default (pg_current_xact_id()::text::bigint),
  org_id text not null,
  project_id text,
  noun text not null,
  at timestamptz not null default now()
);
create index change_by_org on change (org_id, xid);
create index change_by_time on change (at);

-- The account at a certificate authority, by its directory.
create table acme_account (
  directory text primary key,
  sealed_key bytea not null,
  -- Null until it is registered.
  url text,
  created_at timestamptz not null default now()
);

create table certificate (
  id text primary key,
  -- May be a wildcard: `*.apps.example.com`.
  hostname text not null unique,
  challenge text not null check (challenge in ('http-01', 'dns-01')),
  -- Whether the name is served; one that is not keeps its certificate until its end, for the case that it comes back.
  wanted boolean not null default true,
  -- Of the last attempt.
  status text not null default 'pending' check (status in ('pending', 'issuing', 'active', 'failed')),
  detail text not null default 'No attempt was made yet.',
  failures integer not null default 0,
  -- Of an active one: its renewal.
  next_attempt_at timestamptz not null default now(),
  ordered_at timestamptz,
  -- The certificate that serves; a failed renewal leaves it.
  chain_pem text,
  sealed_key bytea,
  not_before timestamptz,
  not_after timestamptz,
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now(),
  -- What the present or last attempt did, step by step with its times.
  steps jsonb not null default '[]',
  -- When edges first served a certificate of the name: until then it is stored, but not in force.
  confirmed_at timestamptz,
  -- The organization that the name belongs to; null for the platform's own names.
  org_id text references organization
);
create index certificate_due on certificate (next_attempt_at) where wanted;
create index certificate_ordered on certificate (ordered_at);
create index certificate_ending on certificate (not_after) where wanted and chain_pem is not null;

-- What certificate authorities and our own probes are answered with.
create table acme_challenge (
  token text primary key,
  hostname text not null,
  answer text not null,
  created_at timestamptz not null default now()
);

-- What a project says of its types. The replicas of `web` are the project's own.
create table process_setting (
  project_id text not null references project on delete cascade,
  process text not null,
  org_id text not null references organization,
  replicas integer check (replicas between 0 and 8),
  -- Whether old and new ones may run beside each other while a deployment is switched.
  overlap boolean not null default false,
  -- Replicas that were started before this are started anew, one after the other.
  restart_at timestamptz,
  primary key (project_id, process)
);

-- One-off commands: each runs once, in a sandbox of its own, in the image of a deployment.
create table run (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  number integer not null,
  status text not null default 'queued' check (status in ('queued', 'running', 'succeeded', 'failed', 'timed_out', 'cancelled', 'interrupted')),
  -- By its number: deployments are deleted before what ran in their images.
  deployment_id text not null,
  deployment integer not null,
  command text not null,
  timeout_seconds integer not null,
  requested_by text not null,
  exit_code integer,
  cancel_requested boolean not null default false,
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  -- In a terminal: only the token that asked may open it, once.
  terminal boolean not null default false,
  token_id text,
  unique (project_id, number)
);
create index run_open on run (created_at) where status in ('queued', 'running');
create index run_old on run (created_at);
-- What looks for dead leases and old rows every few seconds must not read the rows of what has ended.
create index run_leased on run (lease_until) where lease_until is not null;

-- Ways into a project's database through the control plane, each with a role of its own that ends with it.
create table database_tunnel (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  -- Only the token that asked for it may open it.
  token_id text not null,
  purpose text not null check (purpose in ('session', 'dump', 'import')),
  format text check (format in ('custom', 'plain')),
  -- Null: the live one, whatever it is when the tunnel opens.
  database_name text,
  status text not null default 'waiting' check (status in ('waiting', 'open', 'closed')),
  role_name text,
  close_reason text,
  created_at timestamptz not null default now(),
  opened_at timestamptz,
  closed_at timestamptz,
  -- The control plane that carries it moves this on; once it has passed, the tunnel is dead and its role is dropped.
  alive_until timestamptz not null default now() + interval '60 seconds',
  -- Set when the tunnel carries a backup's archive. Without a foreign key: the tunnel of a backup that retention deletes meanwhile must
  -- not become one to the live database.
  backup_id text
);
create index database_tunnel_live on database_tunnel (org_id) where status <> 'closed';
create index database_tunnel_old on database_tunnel (created_at);

-- Where an organization wants to hear of what happens.
create table webhook (
  id text primary key,
  org_id text not null references organization,
  name text not null,
  -- The address of a chat's webhook is a secret by itself; `host` is what lists show of it.
  sealed_url bytea not null,
  host text not null,
  format text not null check (format in ('json', 'slack', 'discord', 'email')),
  events text[] not null,
  sealed_secret bytea not null,
  -- Events that are queued in one hour; the ones after them are dropped.
  hourly_limit integer not null,
  -- Failed attempts since the last delivery, and since when.
  failures integer not null default 0,
  failing_since timestamptz,
  disabled_at timestamptz,
  disabled_reason text,
  created_at timestamptz not null default now(),
  -- False for an e-mail address until an owner of the organization has returned the code that was mailed to it.
  confirmed boolean not null default true
);
create index webhook_of_org on webhook (org_id, id desc);
create index webhook_given_up on webhook (disabled_at) where disabled_reason is not null;

-- One event for one webhook. The triggers below write it in the transaction of the event.
create table webhook_delivery (
  -- Sorts by time.
  id text primary key default 'whd_' || lpad(to_hex((extract(epoch from clock_timestamp()) * 1000000)::bigint), 14, '0')
    || substr(replace(gen_random_uuid()::text, '-', ''), 1, 16),
  org_id text not null references organization,
  webhook_id text not null references webhook on delete cascade,
  event text not null,
  data jsonb not null,
  status text not null default 'queued' check (status in ('queued', 'delivered', 'failed', 'dropped')),
  -- What became of each attempt, the first one first.
  attempts jsonb not null default '[]',
  next_attempt_at timestamptz not null default now(),
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now(),
  finished_at timestamptz
);
create index webhook_delivery_due on webhook_delivery (next_attempt_at) where status = 'queued';
create index webhook_delivery_leased on webhook_delivery (lease_until) where lease_until is not null;
create index webhook_delivery_of_webhook on webhook_delivery (webhook_id, id desc);
create index webhook_delivery_recent on webhook_delivery (webhook_id, created_at);
create index webhook_delivery_old on webhook_delivery (created_at);

-- What an organization's builds log in to registries with.
create table registry (
  org_id text not null references organization,
  host text not null,
  username text not null,
  sealed_password bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, host)
);

-- Names that renamed projects had: they lead to the project, and no other one gets them, until they expire.
create table earlier_name (
  org_id text not null references organization,
  project_id text not null references project,
  slug text not null,
  hostname text not null unique,
  expires_at timestamptz not null,
  primary key (org_id, slug)
);
create index earlier_name_of_project on earlier_name (project_id);

-- A project that follows a branch of a repository elsewhere.
create table project_follow (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project unique,
  url text not null,
  branch text not null,
  provider text not null check (provider in ('github', 'gitlab', 'gitea', 'other')),
  -- The deploy key, for repositories over SSH.
  public_key text,
  sealed_key bytea,
  -- What the host showed first, as lines of known_hosts; it must go on showing that.
  host_keys text,
  -- Reads the repository over HTTPS and sets commit statuses.
  sealed_token bytea,
  -- Signs the deliveries of the repository's webhook.
  sealed_secret bytea not null,
  -- The commit that the branch pointed at when it was last fetched; null: never.
  commit text,
  fetched_at timestamptz,
  -- Why the last fetch failed; null when it did not.
  problem text,
  failures integer not null default 0,
  -- Why the last commit status could not be set; null when it could.
  status_problem text,
  -- When the branch is looked at next.
  next_fetch_at timestamptz not null default now(),
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- The fingerprint that the SSH host of a followed repository must show; null: the first one that it shows is remembered.
  host_key_pin text
);
create index project_follow_due on project_follow (next_fetch_at);
create index project_follow_leased on project_follow (lease_until) where lease_until is not null;

-- Something that asked for a fetch, or was refused to.
create table follow_delivery (
  id text primary key,
  org_id text not null references organization,
  follow_id text not null references project_follow on delete cascade,
  source text not null check (source in ('hook', 'manual', 'poll')),
  -- What the sender calls it.
  event text not null,
  status text not null check (status in ('waiting', 'deployed', 'ignored')),
  reason text,
  -- What it names, or what was fetched because of it.
  commit text,
  build_id text references build on delete set null,
  -- Whether its signature was right; others are kept in small number.
  signed boolean not null,
  received_at timestamptz not null default now(),
  finished_at timestamptz
);
create index follow_delivery_of_follow on follow_delivery (follow_id, id desc);
create index follow_delivery_waiting on follow_delivery (follow_id) where status = 'waiting';
create index follow_delivery_of_build on follow_delivery (build_id) where build_id is not null;
create index follow_delivery_old on follow_delivery (received_at);

-- Builds whose state the repository's host is shown until it is final.
create table commit_status (
  build_id text primary key references build on delete cascade,
  follow_id text not null references project_follow on delete cascade,
  -- What the host was shown last; null: nothing yet.
  shown text,
  failures integer not null default 0,
  -- While a control plane shows it, the others leave it alone until then.
  next_attempt_at timestamptz not null default now()
);
create index commit_status_due on commit_status (next_attempt_at);
create index commit_status_of_follow on commit_status (follow_id);

-- A project whose images are being removed. Its builds wait for the end of that: one that began meanwhile could make an image again
-- right before it is removed.
create table image_pruning (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project unique,
  lease_owner text not null,
  lease_until timestamptz not null,
  fence integer not null default 0,
  created_at timestamptz not null default now()
);

-- Each process of Berth on this database, while it lives. How requests find the process that can serve them.
create table control_plane (
  -- As in the table of machines.
  name text primary key,
  owner text not null,
  roles text[] not null,
  -- Where other processes reach its control port.
  url text not null,
  seen_at timestamptz not null
);

-- One row, whose number grows with each commit that changes what edges serve with.
create table certificate_mark (changes bigint not null);
insert into certificate_mark (changes) values (0);

-- Grows with each route table that is sent to the edge, over all control planes.
create sequence route_version;

create view deployment_process as
  select d.id as deployment_id, d.org_id, d.project_id, t.process, t.command,
    case when t.process = 'web' then p.replicas else coalesce(s.replicas, 1) end as replicas,
    t.process = 'web' or coalesce(s.overlap, false) as overlap, s.restart_at
  from deployment d join project p on p.id = d.project_id
  cross join lateral (
    select 'web' as process, d.image->>'web_command' as command where d.image->'web_command' is distinct from 'null'::jsonb
    union all select key, value from jsonb_each_text(d.image->'processes')) t
  left join process_setting s on s.project_id = d.project_id and s.process = t.process;

create function mark_route_changed(id text) returns void language sql as $$
  insert into route_change (project_id, changed_by) values (id, pg_current_xact_id())
  on conflict (project_id) do update set changed_by = excluded.changed_by
$$;

create function route_of_project_changed() returns trigger language plpgsql as $$
begin
  perform mark_route_changed(coalesce(new.id, old.id));
  return null;
end $$;

create function route_of_organization_changed() returns trigger language plpgsql as $$
begin
  perform mark_route_changed(id) from project where org_id = new.id;
  return null;
end $$;

-- `route_change` names the projects whose routes or workloads changed. A pending deployment has neither.
create function route_of_deployment_changed() returns trigger language plpgsql as $$
begin
  if new.status <> 'pending' then
    perform mark_route_changed(new.project_id);
  end if;
  return null;
end $$;

create function route_of_replica_changed() returns trigger language plpgsql as $$
begin
  perform mark_route_changed(coalesce(new.project_id, old.project_id));
  return null;
end $$;

create function route_of_domain_changed() returns trigger language plpgsql as $$
begin
  perform mark_route_changed(coalesce(new.project_id, old.project_id));
  return null;
end $$;

create function note_change() returns trigger language plpgsql as $$
declare
  changed record;
begin
  changed := coalesce(new, old);
  insert into change (org_id, project_id, noun) values (changed.org_id, to_jsonb(changed) ->> 'project_id', tg_argv[0]);
  perform pg_notify('berth', 'changes:' || changed.org_id);
  return null;
end $$;

-- A certificate's new status is a change of the hostname that it is for.
create function note_certificate_change() returns trigger language plpgsql as $$
begin
  if (new.status, new.detail, new.not_after) is distinct from (old.status, old.detail, old.not_after) then
    update domain set dns_status = dns_status where hostname = new.hostname;
  end if;
  return null;
end $$;

create function queue_webhook_event(org text, kind text, happened text, said jsonb) returns void language plpgsql as $$
declare
  hook record;
  recent integer;
begin
  for hook in select id, hourly_limit from webhook where org_id = org and disabled_at is null and kind = any(events) loop
    select count(*) into recent from webhook_delivery
    where webhook_id = hook.id and created_at > now() - interval '1 hour';
    -- The first one over the limit stays as a row, so that the list shows that some are missing.
    if recent <= hook.hourly_limit then
      insert into webhook_delivery (org_id, webhook_id, event, data, status, finished_at)
      values (org, hook.id, happened, jsonb_strip_nulls(said), case when recent < hook.hourly_limit then 'queued' else 'dropped' end,
        case when recent < hook.hourly_limit then null else now() end);
      perform pg_notify('berth', 'webhooks:');
    end if;
  end loop;
end $$;

create function slug_of_project(given text) returns text language sql stable as $$
  select slug from project where id = given
$$;

create function webhook_event_of_deployment() returns trigger language plpgsql as $$
begin
  perform queue_webhook_event(new.org_id, 'deployment',
    case new.status when 'active' then 'deployment.activated' else 'deployment.failed' end,
    jsonb_build_object('project', slug_of_project(new.project_id), 'deployment', new.number, 'trigger', new.trigger, 'commit', new.commit,
      'build_id', new.build_id, 'stage', new.failure->>'stage', 'code', new.failure->>'code', 'summary', new.failure->>'summary',
      'hint', new.failure->>'hint'));
  return null;
end $$;

create function webhook_event_of_build() returns trigger language plpgsql as $$
begin
  perform queue_webhook_event(new.org_id, 'build', 'build.' || new.status,
    jsonb_build_object('project', slug_of_project(new.project_id), 'build_id', new.id, 'build', new.number, 'branch', new.branch,
      'commit', new.commit, 'message', new.message, 'requested_by', new.requested_by, 'stage', new.failure->>'stage',
      'code', new.failure->>'code', 'summary', new.failure->>'summary', 'hint', new.failure->>'hint'));
  return null;
end $$;

create function webhook_event_of_backup() returns trigger language plpgsql as $$
begin
  perform queue_webhook_event(new.org_id, 'backup', 'backup.' || new.status,
    jsonb_build_object('project', slug_of_project(new.project_id), 'backup_id', new.id, 'origin', new.origin, 'size_bytes', new.size_bytes,
      'summary', new.problem));
  return null;
end $$;

create function webhook_event_of_verification() returns trigger language plpgsql as $$
begin
  perform queue_webhook_event(new.org_id, 'backup', 'backup.' || case new.verification when 'verified' then 'verified' else 'damaged' end,
    jsonb_build_object('project', slug_of_project(new.project_id), 'backup_id', new.id, 'summary', new.verification_problem));
  return null;
end $$;

create function webhook_event_of_certificate() returns trigger language plpgsql as $$
declare
  named record;
begin
  for named in select org_id, project_id from domain where hostname = new.hostname loop
    perform queue_webhook_event(named.org_id, 'certificate', case new.status when 'active' then 'certificate.issued' else 'certificate.failed' end,
      jsonb_build_object('project', slug_of_project(named.project_id), 'hostname', new.hostname, 'summary', new.detail,
        'not_after', new.not_after));
  end loop;
  return null;
end $$;

-- The link that decides stays with the operator's channels.
create function webhook_event_of_approval() returns trigger language plpgsql as $$
begin
  perform queue_webhook_event(new.org_id, 'approval', 'approval.pending',
    jsonb_build_object('approval_id', new.id, 'route', new.route, 'target', new.target, 'token', new.token_name,
      'project', slug_of_project(new.project_id), 'expires_at', new.expires_at));
  return null;
end $$;

-- Alerts of projects have `organization/project` or a hostname as their subject; those of the platform itself go to its operator alone.
create function webhook_event_of_alert() returns trigger language plpgsql as $$
declare
  owner text;
begin
  if position('/' in new.subject) > 0 then
    select id into owner from organization where slug = split_part(new.subject, '/', 1);
  else
    select org_id into owner from domain where hostname = new.subject limit 1;
  end if;
  if owner is not null and new.machine = '' then
    perform queue_webhook_event(owner, 'alert', case when new.resolved_at is null then 'alert.opened' else 'alert.resolved' end,
      jsonb_build_object('alert_id', new.id, 'check', new.name, 'subject', new.subject, 'severity', new.severity, 'summary', new.summary,
        'hint', new.hint));
  end if;
  return null;
end $$;

create function replica_knows_its_project() returns trigger language plpgsql as $$
begin
  select project_id into new.project_id from deployment where id = new.deployment_id;
  return new;
end $$;

create function certificates_changed() returns trigger language plpgsql as $$
declare
  is_other boolean;
begin
  if tg_op = 'DELETE' then
    select exists (select from earlier where wanted and chain_pem is not null) into is_other;
  else
    select exists (select from earlier e join later l on l.id = e.id where l.chain_pem is not null
      and (l.wanted, l.chain_pem, l.not_after) is distinct from (e.wanted, e.chain_pem, e.not_after)) into is_other;
  end if;
  if is_other then
    update certificate_mark set changes = changes + 1;
  end if;
  return null;
end $$;

create trigger route_changed after update of suspended_at on organization
  for each row execute function route_of_organization_changed();
create trigger route_changed after insert or delete or update of state, attempt, ready_attempt, host, port on replica
  for each row execute function route_of_replica_changed();
create trigger route_changed after insert or delete or update of hostname, verified_at on domain
  for each row execute function route_of_domain_changed();
create trigger change_noted after insert on activity for each row execute function note_change('activity');
create trigger change_noted after insert or update of status on build for each row execute function note_change('build');
create trigger change_noted after insert or update of status, switching on deployment for each row execute function note_change('deployment');
create trigger change_noted after update of state, ready_attempt on replica for each row execute function note_change('replica');
create trigger change_noted after update of status on project_database for each row execute function note_change('database');
create trigger change_noted after insert or update of status, verification on backup for each row execute function note_change('backup');
create trigger change_noted after insert or update of status, phase on backup_operation for each row execute function note_change('backup');
create trigger change_noted after insert or update of status on cron_run for each row execute function note_change('cron');
create trigger change_noted after insert or update of status on approval for each row execute function note_change('approval');
create trigger change_noted after update of dns_status, verified_at, lost_at on domain for each row execute function note_change('domain');
create trigger webhook_event after update of status on deployment for each row
  when (new.status is distinct from old.status and new.status in ('active', 'failed')) execute function webhook_event_of_deployment();
create trigger webhook_event after update of status on build for each row
  when (new.status is distinct from old.status and new.status in ('succeeded', 'failed')) execute function webhook_event_of_build();
create trigger webhook_event after update of status on backup for each row
  when (new.status is distinct from old.status and new.status in ('completed', 'failed')) execute function webhook_event_of_backup();
create trigger webhook_event_of_verification after update of verification on backup for each row
  when (new.verification is not null and new.verification is distinct from old.verification)
  execute function webhook_event_of_verification();
create trigger webhook_event after update of status on certificate for each row
  when (new.status is distinct from old.status and new.status in ('active', 'failed')) execute function webhook_event_of_certificate();
create trigger webhook_event after insert on approval for each row
  when (new.status = 'pending') execute function webhook_event_of_approval();
create trigger webhook_event after insert on alert for each row execute function webhook_event_of_alert();
create trigger webhook_event_of_end after update of resolved_at on alert for each row
  when (old.resolved_at is null and new.resolved_at is not null) execute function webhook_event_of_alert();
create trigger route_changed
  after insert or delete or update of hostname, replicas, deleted_at, purged_at, maintenance_since, maintenance_message on project
  for each row execute function route_of_project_changed();
create trigger route_changed after insert or delete on earlier_name for each row execute function route_of_domain_changed();
create trigger change_noted after update of status, detail, not_after on certificate for each row execute function note_certificate_change();
create trigger knows_its_project before insert on replica for each row execute function replica_knows_its_project();
create trigger route_changed after insert or update of status, switching, taking_over on deployment
  for each row execute function route_of_deployment_changed();
create trigger route_changed after insert or delete or update on process_setting
  for each row execute function route_of_domain_changed();
create trigger marked after update on certificate referencing old table as earlier new table as later
  for each statement execute function certificates_changed();
create trigger marked_by_deletion after delete on certificate referencing old table as earlier
  for each statement execute function certificates_changed();
