-- expand
alter table project
  -- Minutes without a request after which the project's processes are stopped; null: never.
  add column sleep_after_minutes integer,
  -- `asleep`: nothing runs until a request comes. `waking`: a request came, and the processes start.
  add column sleep text check (sleep in ('asleep', 'waking')),
  -- When `sleep` last changed.
  add column sleep_at timestamptz;
drop trigger route_changed on project;
create trigger route_changed after insert or delete
  or update of hostname, replicas, deleted_at, purged_at, maintenance_since, maintenance_message, sleep on project
  for each row execute function route_of_project_changed();
