-- expand
-- Trial restores from the archive: what was restored, and what it was compared with.
create table archive_drill (
  -- The id of the operation that performs it.
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  origin text not null check (origin in ('manual', 'daily')),
  status text not null default 'running' check (status in ('running', 'passed', 'mismatch', 'failed')),
  created_at timestamptz not null default now(),
  finished_at timestamptz,
  problem text,
  evidence jsonb,
  -- Of the evidence as canonical JSON.
  sha256 text
);
create index archive_drill_of_project on archive_drill (org_id, project_id, id desc);
