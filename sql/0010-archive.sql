-- expand
-- The past of databases: chains of stored log, and the copies that a recovery begins with.
alter table project_database add column archived boolean not null default false;
-- The databases before this one write segments of 16 MB and keep no log until their next start: their owners turn it on.
alter table project_database alter column archived set default true;
-- Why the log is not being stored, in words for the project's owner; null while it is.
alter table project_database add column archive_problem text;

create table archive_chain (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  database_id text not null,
  -- PostgreSQL's identifier of the instance. With another one, or another timeline, a new chain begins.
  log_system text not null,
  timeline integer not null,
  segment_bytes integer not null,
  storage text not null,
  -- Positions in the log: where the oldest stored segment starts, and how far all of it is stored.
  first_position bigint not null,
  stored_position bigint not null,
  -- Every transaction that was acknowledged by then is stored.
  stored_until timestamptz,
  created_at timestamptz not null default now(),
  ended_at timestamptz,
  end_reason text,
  -- Nothing shows it any more, and its files are being deleted.
  expired_at timestamptz
);
create unique index archive_chain_one_open on archive_chain (database_id) where ended_at is null;
create index archive_chain_of_project on archive_chain (org_id, project_id);

create table archive_copy (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  chain_id text not null references archive_chain on delete cascade,
  status text not null default 'copying' check (status in ('copying', 'completed')),
  created_at timestamptz not null default now(),
  storage_key text not null,
  -- From then on, every moment can be restored.
  restorable_from timestamptz,
  start_position bigint,
  stop_position bigint,
  backup_label text,
  size_bytes bigint,
  sha256 text,
  -- How much log was stored after it and before the next one.
  log_bytes bigint not null default 0
);
create index archive_copy_of_chain on archive_copy (chain_id, restorable_from);

-- A restore is of a backup or to a moment.
alter table backup_operation alter column backup_id drop not null;
alter table backup_operation add column restore_to timestamptz;
-- The moment that a restored database shows; null: a backup's.
alter table restored_database add column shows timestamptz;
