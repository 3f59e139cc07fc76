-- expand
-- Release commands that ran on a copy of the data before the real one.
create table rehearsal (
  deployment_id text primary key references deployment on delete cascade,
  org_id text not null references organization,
  project_id text not null references project,
  database_id text,
  status text not null default 'running' check (status in ('running', 'passed', 'failed', 'skipped')),
  -- Why it was skipped, or what failed; in words for the project's owner.
  reason text,
  method text check (method in ('clone', 'copy')),
  copy_bytes bigint,
  started_at timestamptz not null default now(),
  finished_at timestamptz,
  report jsonb,
  -- Whether the copy is gone from the machine.
  cleared boolean not null default false
);
create index rehearsal_of_project on rehearsal (org_id, project_id, deployment_id);
create index rehearsal_uncleared on rehearsal (started_at) where not cleared;
