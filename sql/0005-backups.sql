-- Backups, the work on them, and the databases that were restored from them.

create table backup (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  status text not null default 'running' check (status in ('running', 'completed', 'failed')),
  -- Asked for by somebody, by the clock, or before a project is deleted for good.
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

-- Making, restoring or verifying a backup. Databases that it makes carry a name of its own, so that whoever takes it over
-- after a crash knows what to drop.
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
