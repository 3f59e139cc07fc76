-- expand
-- Backups of the files in $STORAGE_DIR. Their content is stored in pieces, each once for a project and found by its digest.
-- `storage_snapshot` is no longer written; a later contract drops it.
alter table backup add column content text not null default 'database' check (content in ('database', 'files'));
create table storage_piece (
  project_id text not null references project,
  org_id text not null references organization,
  sha256 text not null,
  storage text not null,
  storage_key text not null,
  -- Null until the piece is stored.
  bytes bigint,
  -- The oldest and the newest backup that may contain it. It is deleted when no backup between them is left.
  first_backup text not null,
  last_backup text not null,
  unused boolean not null default false,
  primary key (project_id, sha256)
);
create index storage_piece_unused on storage_piece (project_id) where unused;
