-- Since when an application's visitors get the maintenance page, and what it says instead of the platform's own sentence.
alter table project add maintenance_since timestamptz;
alter table project add maintenance_message text;

drop trigger route_changed on project;
create trigger route_changed
  after insert or delete or update of hostname, replicas, deleted_at, purged_at, maintenance_since, maintenance_message on project
  for each row execute function route_of_project_changed();
