-- expand
-- Branches of a followed repository that are fetched for a preview, each until that is done. Only a delivery makes a row.
create table preview_fetch (
  id text primary key,
  org_id text not null references organization,
  follow_id text not null references project_follow on delete cascade,
  branch text not null,
  failures integer not null default 0,
  next_fetch_at timestamptz not null default now(),
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  unique (follow_id, branch)
);
create index preview_fetch_due on preview_fetch (next_fetch_at);
-- The branch that a delivery reports if it is for a preview; null: it is for the followed branch.
alter table follow_delivery add column branch text;
