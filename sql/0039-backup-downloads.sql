-- A tunnel may carry a backup's archive instead of a dump of the database. Without a foreign key: the tunnel of a backup that retention has
-- deleted meanwhile must not become one to the live database.
alter table database_tunnel add column backup_id text;
