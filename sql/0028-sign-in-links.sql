-- expand
-- One-time links that sign in with a token, which only the link's own code opens.
create table sign_in_link (
  hash bytea primary key,
  token_hash bytea not null,
  locked_token bytea not null,
  expires_at timestamptz not null
);
create index sign_in_link_of_token on sign_in_link (token_hash, expires_at desc);
