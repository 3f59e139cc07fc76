-- One-off commands: each runs once, in a sandbox of its own, in the image of a deployment.
create table run (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  number integer not null,
  status text not null default 'queued'
    check (status in ('queued', 'running', 'succeeded', 'failed', 'timed_out', 'cancelled', 'interrupted')),
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
  unique (project_id, number)
);
create index run_open on run (created_at) where status in ('queued', 'running');
create index run_old on run (created_at);
