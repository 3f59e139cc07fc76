-- Cron jobs and their runs. A run's row is written before anything is called: the unique key of job and due minute is what
-- makes a second delivery impossible, whoever crashes and however many schedulers there are.

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
