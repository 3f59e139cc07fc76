-- expand
-- Programs that a person connects by a consent page: the command line (`cli`), and agents at /mcp (`mcp`). Each has a token of its own.
alter table api_token drop constraint api_token_kind_check;
alter table api_token add constraint api_token_kind_check check (kind in ('token', 'member', 'cli', 'mcp'));

-- Programs that registered themselves, RFC 7591. None has a secret.
create table oauth_client (
  id text primary key,
  name text not null,
  redirect_uris text[] not null,
  -- From where it was registered, as limits count it.
  address text not null,
  created_at timestamptz not null default now(),
  -- When a person last consented to it.
  last_used_at timestamptz
);
create index oauth_client_by_address on oauth_client (address, created_at);
create index oauth_client_by_use on oauth_client (last_used_at nulls first, created_at);

-- A consent on its way to the program that asked: by a code in its redirect, or by a code that a person types (RFC 8628).
create table oauth_grant (
  -- SHA-256 of the code that the program exchanges for its token.
  hash bytea primary key,
  client_id text not null,
  redirect_uri text,
  -- SHA-256 of the program's verifier in base64url, RFC 7636.
  challenge text,
  -- SHA-256 of what a person types.
  user_code_hash bytea unique,
  -- What the program calls the computer that it runs on.
  device text not null default '',
  -- The person or token whose session typed the code first: nobody else may decide it.
  opened_by text,
  -- What the consent made. Until it is used, no text has the token's hash.
  token_id text references api_token,
  token_expires_at timestamptz,
  denied_at timestamptz,
  used_at timestamptz,
  polled_at timestamptz,
  expires_at timestamptz not null
);
create index oauth_grant_by_end on oauth_grant (expires_at);
