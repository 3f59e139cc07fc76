-- expand
-- Backups of the platform itself: its database, keys, settings and repositories, encrypted to the recovery key.
create table platform_backup (
  id text primary key,
  origin text not null check (origin in ('manual', 'daily')),
  status text not null default 'running' check (status in ('running', 'completed', 'failed')),
  created_at timestamptz not null default now(),
  finished_at timestamptz,
  attempts integer not null default 0,
  -- The moment that the copy of the database shows.
  taken_at timestamptz,
  version text,
  -- The public half of the recovery key that opens it.
  recipient text,
  storage text,
  storage_key text,
  size_bytes bigint,
  sha256 text,
  problem text
);
create unique index platform_backup_one_running on platform_backup (status) where status = 'running';
