-- expand
-- Copies of projects' databases, each an instance of its own beside the live one.
create table database_branch (
  -- Also of its instance.
  id text primary key,
  org_id text not null references organization,
  -- Whose database it was made from, and whose encryption its password has.
  project_id text not null references project,
  -- The project whose deployments have it as their database.
  used_by text references project,
  name text not null,
  status text not null default 'copying' check (status in ('copying', 'ready', 'failed', 'deleting')),
  -- The moment that it was asked to show; null: the one at which it was copied.
  shows timestamptz,
  -- The commit whose mask changes it before anybody reaches it.
  mask_commit text,
  role_name text not null,
  database_name text not null,
  sealed_password bytea not null,
  access text not null default 'open' check (access in ('open', 'read_only')),
  method text check (method in ('clone', 'copy')),
  copy_bytes bigint,
  expected_seconds integer,
  size_bytes bigint,
  size_limit_bytes bigint,
  host text,
  port integer,
  engine_version text,
  problem_code text,
  -- A sentence for the project's owner.
  problem text,
  created_at timestamptz not null default now(),
  ready_at timestamptz,
  expires_at timestamptz not null,
  attempts integer not null default 0,
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0
);
create unique index branch_by_name on database_branch (project_id, name) where status <> 'deleting';
create index branch_of_user on database_branch (used_by) where used_by is not null;
create index branch_at_work on database_branch (created_at) where status in ('copying', 'deleting');
alter table database_tunnel add column branch text;
