-- A purge deletes everything of a deleted project but its final backup. The project's row stays, for its activity and that backup; its slug
-- and hostname are free again.
alter table project add column purged_at timestamptz;
alter table project drop constraint project_org_id_slug_key;
alter table project drop constraint project_hostname_key;
create unique index project_of_slug on project (org_id, slug) where purged_at is null;
create unique index project_of_hostname on project (hostname) where purged_at is null;

create table project_purge (
  id text primary key,
  org_id text not null references organization (id),
  project_id text not null references project (id),
  status text not null default 'running' check (status in ('running', 'completed', 'failed')),
  requested_by text not null,
  -- The final backup; null without a database.
  backup_id text references backup (id) on delete set null,
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

alter table backup drop constraint backup_origin_check;
alter table backup add constraint backup_origin_check check (origin in ('manual', 'daily', 'final'));
