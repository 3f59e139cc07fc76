-- expand
-- Deploys whose release command waits for copies of the data, and the copies of $STORAGE_DIR.
alter table build add column copies_data boolean not null default false;
alter table backup drop constraint backup_origin_check;
alter table backup add constraint backup_origin_check check (origin in ('manual', 'daily', 'final', 'release'));
create table storage_snapshot (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  deployment_id text not null,
  status text not null check (status in ('copying', 'complete', 'deleted')),
  bytes bigint,
  created_at timestamptz not null default now(),
  finished_at timestamptz
);
create index storage_snapshot_of_project on storage_snapshot (org_id, project_id, id desc);
