-- Writes that carry an Idempotency-Key, for a day. A row without an answer is a request under way.

create table idempotency_key (
  org_id text not null references organization,
  token_id text not null references api_token,
  key text not null,
  -- SHA-256 of the request that the key came with first.
  request_hash bytea not null,
  -- Who works on it: a request that was given up and comes back late finds another number here.
  attempt integer not null default 1,
  -- Until then the request is taken to be under way.
  held_until timestamptz not null,
  -- The change is committed but what came of it is not known yet: it must not be done again.
  committed boolean not null default false,
  status_code integer,
  -- Answers may hold a new token's text, so they are sealed.
  sealed_answer bytea,
  expires_at timestamptz not null,
  primary key (token_id, key)
);
create index idempotency_key_ending on idempotency_key (expires_at);
