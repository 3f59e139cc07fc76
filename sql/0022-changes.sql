-- What changed for an organization, for streams that tell pages and agents to look again. Rows live for an hour.
-- A reader goes on by transaction: below the oldest one that still runs, nothing can appear any more.
create table change (
  xid bigint not null default (pg_current_xact_id()::text::bigint),
  org_id text not null,
  project_id text,
  noun text not null,
  at timestamptz not null default now()
);
create index change_by_org on change (org_id, xid);
create index change_by_time on change (at);

create function note_change() returns trigger language plpgsql as $$
declare
  changed record;
  project text;
begin
  changed := coalesce(new, old);
  project := to_jsonb(changed) ->> 'project_id';
  if tg_argv[0] = 'replica' then
    select d.project_id into project from deployment d where d.id = to_jsonb(changed) ->> 'deployment_id';
  end if;
  insert into change (org_id, project_id, noun) values (changed.org_id, project, tg_argv[0]);
  perform pg_notify('berth', 'changes:' || changed.org_id);
  return null;
end $$;

create trigger change_noted after insert on activity for each row execute function note_change('activity');
create trigger change_noted after insert or update of status on build for each row execute function note_change('build');
create trigger change_noted after insert or update of status, switching on deployment for each row execute function note_change('deployment');
create trigger change_noted after update of state, ready_attempt on replica for each row execute function note_change('replica');
create trigger change_noted after update of dns_status, ssl_status, verified_at, lost_at on domain for each row execute function note_change('domain');
create trigger change_noted after update of status on project_database for each row execute function note_change('database');
create trigger change_noted after insert or update of status, verification on backup for each row execute function note_change('backup');
create trigger change_noted after insert or update of status, phase on backup_operation for each row execute function note_change('backup');
create trigger change_noted after insert or update of status on cron_run for each row execute function note_change('cron');
create trigger change_noted after insert or update of status on approval for each row execute function note_change('approval');
