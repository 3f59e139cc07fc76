-- A project that follows a branch of a repository elsewhere.
create table project_follow (
  id text primary key,
  org_id text not null references organization,
  project_id text not null unique references project,
  url text not null,
  branch text not null,
  provider text not null check (provider in ('github', 'gitlab', 'gitea', 'other')),
  -- The deploy key, for repositories over SSH.
  public_key text,
  sealed_key bytea,
  -- What the host showed first, as lines of known_hosts; it must go on showing that.
  host_keys text,
  -- Reads the repository over HTTPS and sets commit statuses.
  sealed_token bytea,
  -- Signs the deliveries of the repository's webhook.
  sealed_secret bytea not null,
  -- The commit that the branch pointed at when it was last fetched; null: never.
  commit text,
  fetched_at timestamptz,
  -- Why the last fetch failed; null when it did not.
  problem text,
  failures integer not null default 0,
  -- Why the last commit status could not be set; null when it could.
  status_problem text,
  -- When the branch is looked at next.
  next_fetch_at timestamptz not null default now(),
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index project_follow_due on project_follow (next_fetch_at);
create index project_follow_leased on project_follow (lease_until) where lease_until is not null;

-- Something that asked for a fetch, or was refused to.
create table follow_delivery (
  id text primary key,
  org_id text not null references organization,
  follow_id text not null references project_follow on delete cascade,
  source text not null check (source in ('hook', 'manual', 'poll')),
  -- What the sender calls it.
  event text not null,
  status text not null check (status in ('waiting', 'deployed', 'ignored')),
  reason text,
  -- What it names, or what was fetched because of it.
  commit text,
  build_id text references build on delete set null,
  -- Whether its signature was right; others are kept in small number.
  signed boolean not null,
  received_at timestamptz not null default now(),
  finished_at timestamptz
);
create index follow_delivery_of_follow on follow_delivery (follow_id, id desc);
create index follow_delivery_waiting on follow_delivery (follow_id) where status = 'waiting';
create index follow_delivery_of_build on follow_delivery (build_id) where build_id is not null;
create index follow_delivery_old on follow_delivery (received_at);

alter table build drop constraint build_origin_check;
alter table build add constraint build_origin_check check (origin in ('push', 'upload', 'follow', 'redeploy'));
alter table deployment drop constraint deployment_trigger_check;
alter table deployment add constraint deployment_trigger_check
  check (trigger in ('push', 'upload', 'follow', 'redeploy', 'rollback', 'variables', 'restart'));
drop index deployment_pushed;
create index deployment_pushed on deployment (project_id, number desc)
  where trigger in ('push', 'upload', 'follow') and activated_at is not null;

-- Builds whose state the repository's host is shown until it is final.
create table commit_status (
  build_id text primary key references build on delete cascade,
  follow_id text not null references project_follow on delete cascade,
  -- What the host was shown last; null: nothing yet.
  shown text,
  failures integer not null default 0,
  -- While a control plane shows it, the others leave it alone until then.
  next_attempt_at timestamptz not null default now()
);
create index commit_status_due on commit_status (next_attempt_at);
create index commit_status_of_follow on commit_status (follow_id);
