-- expand
-- Who began to wait for a code: when too many programs wait, those of the address with the most of them go first.
alter table oauth_grant add column address text;
create index oauth_grant_waiting on oauth_grant (expires_at) where user_code_hash is not null;
