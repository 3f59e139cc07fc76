-- What an organization's builds log in to registries with.
create table registry (
  org_id text not null references organization,
  host text not null,
  username text not null,
  sealed_password bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (org_id, host)
);
