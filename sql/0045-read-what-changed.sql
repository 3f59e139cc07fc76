-- Processes that ask every few seconds read only what changed since they asked last: the workloads of a machine and the certificates of an edge.

-- A replica knows its project, so that an index finds the replicas of a project. A trigger writes it; the default lets inserts leave it out.
alter table replica add column project_id text not null default '';
update replica r set project_id = d.project_id from deployment d where d.id = r.deployment_id;
create index replica_of_project on replica (project_id) where state <> 'stopped';

create function replica_knows_its_project() returns trigger language plpgsql as $$
begin
  select project_id into new.project_id from deployment where id = new.deployment_id;
  return new;
end $$;
create trigger knows_its_project before insert on replica for each row execute function replica_knows_its_project();

create or replace function note_change() returns trigger language plpgsql as $$
declare
  changed record;
begin
  changed := coalesce(new, old);
  insert into change (org_id, project_id, noun) values (changed.org_id, to_jsonb(changed) ->> 'project_id', tg_argv[0]);
  perform pg_notify('berth', 'changes:' || changed.org_id);
  return null;
end $$;

-- `route_change` names the projects whose routes or workloads changed. A pending deployment has neither.
create or replace function route_of_deployment_changed() returns trigger language plpgsql as $$
begin
  if new.status <> 'pending' then
    perform mark_route_changed(new.project_id);
  end if;
  return null;
end $$;
drop trigger route_changed on deployment;
create trigger route_changed after insert or update of status, switching, taking_over on deployment
  for each row execute function route_of_deployment_changed();

create or replace function route_of_replica_changed() returns trigger language plpgsql as $$
begin
  perform mark_route_changed(coalesce(new.project_id, old.project_id));
  return null;
end $$;

create trigger route_changed after insert or delete or update on process_setting
  for each row execute function route_of_domain_changed();

-- One row, whose number grows with each commit that changes what edges serve with.
create table certificate_mark (changes bigint not null);
insert into certificate_mark (changes) values (0);
create index certificate_ending on certificate (not_after) where wanted and chain_pem is not null;

create function certificates_changed() returns trigger language plpgsql as $$
declare
  is_other boolean;
begin
  if tg_op = 'DELETE' then
    select exists (select from earlier where wanted and chain_pem is not null) into is_other;
  else
    select exists (select from earlier e join later l on l.id = e.id where l.chain_pem is not null
      and (l.wanted, l.chain_pem, l.not_after) is distinct from (e.wanted, e.chain_pem, e.not_after)) into is_other;
  end if;
  if is_other then
    update certificate_mark set changes = changes + 1;
  end if;
  return null;
end $$;
create trigger marked after update on certificate referencing old table as earlier new table as later
  for each statement execute function certificates_changed();
create trigger marked_by_deletion after delete on certificate referencing old table as earlier
  for each statement execute function certificates_changed();

-- The few projects whose variables changed since their deployment was made.
create index project_variables_changed on project (variables_changed_at) where variables_changed_at is not null;

-- Their callers write the sums out, which costs a twentieth.
drop aggregate sum_counts(bigint[]);
drop function add_counts(bigint[], bigint[]);
