-- Organizations, tokens, keys, projects, variables, builds, deployments, replicas, databases, activity.
-- Every row of a tenant carries org_id, and every query has it in its key.
-- Rows with work to do carry a lease: who works on it, until when, and a fence that grows with each taking, so that a
-- worker that lost its lease can change nothing any more.

create table organization (
  id text primary key,
  slug text not null unique,
  name text not null,
  max_projects integer not null default 10 check (max_projects >= 0),
  suspended_at timestamptz,
  created_at timestamptz not null default now()
);

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
  hostname text not null unique,
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
  unique (org_id, slug)
);

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
  origin text not null check (origin in ('push', 'redeploy')),
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
  unique (project_id, number)
);
create unique index build_one_running on build (project_id) where status = 'running';
create index build_open on build (status, created_at) where status in ('queued', 'running');
create index build_of_project on build (org_id, project_id, number desc);

create table deployment (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  number integer not null,
  status text not null default 'pending' check (status in ('pending', 'starting', 'active', 'retired', 'failed', 'superseded')),
  trigger text not null check (trigger in ('push', 'redeploy', 'rollback', 'variables')),
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
  unique (project_id, number)
);
-- Exactly one serves and at most one is on its way, whatever crashes when.
create unique index deployment_one_active on deployment (project_id) where status = 'active';
create unique index deployment_one_coming on deployment (project_id) where status in ('pending', 'starting');
create index deployment_of_project on deployment (org_id, project_id, number desc);

-- What is known of a deployment's replicas: which start of each passed its health check (only that one gets traffic),
-- and its crashes, so that back-off survives a restart of the control plane.
create table replica (
  org_id text not null references organization,
  deployment_id text not null references deployment,
  ordinal integer not null,
  ready_attempt integer not null default 0,
  crashed_attempt integer not null default 0,
  restarts integer not null default 0,
  exit_code integer,
  out_of_memory boolean not null default false,
  exited_at timestamptz,
  next_start_at timestamptz,
  primary key (deployment_id, ordinal)
);

create table project_database (
  id text primary key,
  org_id text not null references organization,
  project_id text not null unique references project,
  status text not null default 'provisioning' check (status in ('provisioning', 'ready', 'failed')),
  role_name text not null,
  database_name text not null,
  sealed_password bytea not null,
  port integer,
  socket_path text,
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

-- Grows with each route table that is sent to the edge, over all control planes.
create sequence route_version;

-- Facts about the platform itself, such as whether the first start was completed.
create table platform_fact (
  key text primary key,
  value jsonb not null,
  updated_at timestamptz not null default now()
);
