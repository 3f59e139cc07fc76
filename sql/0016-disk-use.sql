-- What each project takes of the disk, and what follows from it. Null limits are the installation's.
alter table project add column storage_limit_bytes bigint, add column database_limit_bytes bigint, add column images_limit_bytes bigint;
alter table storage_size rename to disk_use;
alter index storage_size_pkey rename to disk_use_pkey;
alter index storage_size_due rename to disk_use_due;
alter table disk_use rename constraint storage_size_org_id_fkey to disk_use_org_id_fkey;
alter table disk_use rename constraint storage_size_project_id_fkey to disk_use_project_id_fkey;
alter table disk_use rename column size_bytes to storage_bytes;
alter table disk_use
  add column database_bytes bigint,
  add column images_bytes bigint,
  add column storage_access text not null default 'open' check (storage_access in ('open', 'read_only')),
  add column database_access text not null default 'open' check (database_access in ('open', 'read_only', 'closed')),
  add column database_compacting boolean not null default false,
  add column database_ceiling_bytes bigint,
  add column database_closings integer not null default 0,
  add column database_reopens_at timestamptz;
