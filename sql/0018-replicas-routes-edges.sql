-- Where each replica runs is a row: the reconcilers write it, routes are made from it.
alter table replica
  -- The newest start; the runtime gets the number from here.
  add column attempt integer not null default 0,
  add column state text not null default 'stopped' check (state in ('starting', 'running', 'draining', 'exited', 'stopped')),
  add column machine text,
  -- Where edges and cron calls reach it, while it runs.
  add column host text,
  add column port integer,
  add column since timestamptz not null default now();
update replica set attempt = greatest(ready_attempt, crashed_attempt), state = 'exited';
alter table replica drop column crashed_attempt;
create index replica_present on replica (machine) where state <> 'stopped';
create index replica_draining on replica (deployment_id) where state = 'draining';

-- A deployment on its way that edges route to already, until they confirmed it and it becomes active, or until it fails.
alter table deployment add column switching boolean not null default false;

-- Which projects' routes changed, and by which transaction: an edge reads those that its last snapshot did not show.
create table route_change (
  project_id text primary key,
  changed_by xid8 not null
);
create index route_change_order on route_change (changed_by);
insert into route_change (project_id, changed_by) select id, pg_current_xact_id() from project;

-- The edges, and what each serves by. Live are those seen in the last 10 seconds.
create table edge (
  id text primary key,
  machine text not null,
  kind text not null,
  route_version bigint not null,
  -- Requests and tunnels that are open to draining replicas, by host:port.
  open_requests jsonb not null,
  seen_at timestamptz not null
);

create function mark_route_changed(id text) returns void language sql as $$
  insert into route_change (project_id, changed_by) values (id, pg_current_xact_id())
  on conflict (project_id) do update set changed_by = excluded.changed_by
$$;

create function route_of_project_changed() returns trigger language plpgsql as $$
begin
  perform mark_route_changed(coalesce(new.id, old.id));
  return null;
end $$;
create trigger route_changed after insert or delete or update of hostname, replicas, deleted_at, purged_at on project
  for each row execute function route_of_project_changed();

create function route_of_organization_changed() returns trigger language plpgsql as $$
begin
  perform mark_route_changed(id) from project where org_id = new.id;
  return null;
end $$;
create trigger route_changed after update of suspended_at on organization
  for each row execute function route_of_organization_changed();

create function route_of_deployment_changed() returns trigger language plpgsql as $$
begin
  if new.status = 'active' or new.switching or old.status = 'active' or old.switching then
    perform mark_route_changed(new.project_id);
  end if;
  return null;
end $$;
create trigger route_changed after insert or update of status, switching on deployment
  for each row execute function route_of_deployment_changed();

create function route_of_replica_changed() returns trigger language plpgsql as $$
begin
  perform mark_route_changed(project_id) from deployment where id = coalesce(new.deployment_id, old.deployment_id);
  return null;
end $$;
create trigger route_changed after insert or delete or update of state, attempt, ready_attempt, host, port on replica
  for each row execute function route_of_replica_changed();

create function route_of_domain_changed() returns trigger language plpgsql as $$
begin
  perform mark_route_changed(coalesce(new.project_id, old.project_id));
  return null;
end $$;
create trigger route_changed after insert or delete or update of hostname, verified_at on domain
  for each row execute function route_of_domain_changed();
