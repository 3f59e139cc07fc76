-- Requests of tokens in approval mode that wait for a human, and messages that leave by the operator's channels.

create table approval (
  id text primary key,
  org_id text not null references organization,
  token_id text not null references api_token,
  token_name text not null,
  -- SHA-256 of what exactly was asked for: the same request finds its approval again, another one does not.
  fingerprint bytea not null,
  route text not null,
  method text not null,
  path text not null,
  -- The ids of what the request is about, which names in a path may outlive.
  resource text not null,
  project_id text references project,
  target text,
  -- The body and what the handler noted, cut, for the page of the decision. Never sent anywhere.
  request jsonb not null,
  status text not null default 'pending' check (status in ('pending', 'approved', 'denied', 'consumed', 'expired')),
  -- SHA-256 of the link's 256 random bits; the link itself is not stored.
  link_hash bytea not null unique,
  created_at timestamptz not null default now(),
  -- Of the present state: of a pending request 24 hours, of an approved one an hour.
  expires_at timestamptz not null,
  decided_at timestamptz,
  consumed_at timestamptz
);
-- One answer at a time for one request, however often it is sent.
create unique index approval_open on approval (token_id, fingerprint) where status in ('pending', 'approved');
create index approval_of_org on approval (org_id, id desc);
create index approval_ending on approval (expires_at) where status in ('pending', 'approved');
create index approval_denied on approval (token_id, route, resource, decided_at) where status = 'denied';

-- One message for one of the operator's channels. Its text may hold a link that decides, so it is sealed, and erased once delivered.
create table notification (
  id text primary key,
  -- Null for messages about the platform itself.
  org_id text references organization,
  notifier text not null,
  kind text not null,
  sealed_message bytea,
  status text not null default 'queued' check (status in ('queued', 'delivered', 'given_up')),
  attempts integer not null default 0,
  last_error text,
  next_attempt_at timestamptz not null default now(),
  -- After this nobody needs the message any more.
  expires_at timestamptz not null,
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now(),
  finished_at timestamptz
);
create index notification_due on notification (next_attempt_at) where status = 'queued';
