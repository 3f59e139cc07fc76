-- expand
-- People and how they sign in. A membership is a token of kind `member`: it has the person's rights in one organization, and no text.
create table person (
  id text primary key,
  name text not null,
  email text,
  created_at timestamptz not null default now()
);

-- Web Authentication, https://www.w3.org/TR/webauthn-3/. Ids and keys in base64url and COSE form.
create table passkey (
  credential_id text primary key,
  person_id text not null references person,
  public_key bytea not null,
  counter bigint not null,
  transports text[] not null default '{}',
  -- The host that it belongs to: browsers offer it there alone.
  rp_id text not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz
);
create index passkey_of_person on passkey (person_id);

alter table api_token add column kind text not null default 'token' check (kind in ('token', 'member'));
alter table api_token add column person_id text references person;
create unique index api_token_of_member on api_token (org_id, person_id) where kind = 'member' and revoked_at is null;
create index api_token_of_person on api_token (person_id) where person_id is not null;
create index api_token_by_creator on api_token (created_by) where created_by is not null;

-- A browser in which a person is signed in to one organization.
create table session (
  id text primary key,
  person_id text not null references person,
  -- The membership with whose rights it works.
  token_id text not null references api_token,
  -- SHA-256 of the text that the browser sends as a token.
  hash bytea not null unique,
  method text not null check (method in ('passkey', 'invitation', 'switch')),
  user_agent text not null,
  address text not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  expires_at timestamptz not null,
  ended_at timestamptz
);
create index session_of_person on session (person_id, id desc);
create index session_of_member on session (token_id) where ended_at is null;

create table invite (
  id text primary key,
  org_id text not null references organization,
  -- SHA-256 of the link's 256 random bits; the link itself is not stored.
  hash bytea not null unique,
  email text,
  role text not null check (role in ('owner', 'member')),
  platform_admin boolean not null default false,
  project_ids text[],
  created_by text not null references api_token,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  used_at timestamptz,
  used_by text references person,
  revoked_at timestamptz,
  check (role = 'member' or project_ids is null)
);
create index invite_of_org on invite (org_id, id desc);

-- Challenges that were answered, so that no answer signs in twice.
create table used_challenge (
  hash bytea primary key,
  expires_at timestamptz not null
);
