-- How much the project's backups may take of the local disk; null for the installation's limit.
alter table project add column backups_limit_bytes bigint;
