-- A project whose images are being removed. Its builds wait for the end of that: one that began meanwhile could make an image again
-- right before it is removed.
create table image_pruning (
  id text primary key,
  org_id text not null references organization,
  project_id text not null unique references project,
  lease_owner text not null,
  lease_until timestamptz not null,
  fence integer not null default 0,
  created_at timestamptz not null default now()
);
