-- expand
-- Whether a file is sent encrypted to the recovery key.
alter table database_tunnel add column encrypted boolean not null default false;
