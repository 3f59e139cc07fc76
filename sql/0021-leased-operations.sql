-- Asked for every second; finished operations stay as long as their backups.
create index backup_operation_leased on backup_operation (lease_until) where lease_until is not null;
create index project_purge_leased on project_purge (lease_until) where lease_until is not null;
