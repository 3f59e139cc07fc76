-- expand
-- Crashes of one deployment, and failures of a cron job in a row, are one entry of the timeline: the newest row counts them, and the earlier
-- ones are `grouped`.
alter table activity add column grouped boolean not null default false;
alter table cron_run add column grouped boolean not null default false;
alter table cron_run add column failures integer not null default 1;
alter table cron_run add column failing_since timestamptz;

with crash as (
  select id, count(*) over of_deployment as crashes, min(created_at) over of_deployment as since,
    row_number() over (partition by project_id, detail->>'deployment' order by created_at desc, id desc) as rank
  from activity where action in ('replica.crashed', 'replica.out_of_memory')
  window of_deployment as (partition by project_id, detail->>'deployment'))
update activity a set grouped = c.rank > 1,
  detail = case when c.rank > 1 then a.detail else a.detail || jsonb_build_object('crashes', c.crashes, 'since', c.since) end
from crash c where c.id = a.id;

create index activity_shown_of_org on activity (org_id, created_at desc, id desc) where not grouped;
create index activity_shown_of_project on activity (project_id, created_at desc, id desc) where not grouped;
create index activity_crash_shown on activity (project_id)
  where not grouped and action in ('replica.crashed', 'replica.out_of_memory');
create index cron_run_failure_shown on cron_run (project_id, finished_at desc, id desc)
  where status in ('failed', 'timeout', 'unknown') and finished_at is not null and not grouped;
create index cron_run_failure_shown_of_org on cron_run (org_id, finished_at desc, id desc)
  where status in ('failed', 'timeout', 'unknown') and finished_at is not null and not grouped;

create function group_crash() returns trigger language plpgsql as $$
declare
  earlier integer;
  since timestamptz;
begin
  perform pg_advisory_xact_lock(hashtextextended('crash ' || new.project_id, 0));
  with found as (
    update activity set grouped = true where project_id = new.project_id and not grouped
      and action in ('replica.crashed', 'replica.out_of_memory') and detail->>'deployment' = new.detail->>'deployment'
    returning coalesce((detail->>'crashes')::integer, 1) as crashes, coalesce((detail->>'since')::timestamptz, created_at) as began)
  select coalesce(sum(crashes), 0), min(began) into earlier, since from found;
  new.detail := new.detail || jsonb_build_object('crashes', earlier + 1, 'since', coalesce(since, new.created_at));
  return new;
end $$;
create trigger crash_grouped before insert on activity for each row
  when (new.action in ('replica.crashed', 'replica.out_of_memory')) execute function group_crash();

create function group_cron_failure() returns trigger language plpgsql as $$
declare
  last record;
begin
  select id, status, failures, failing_since, finished_at into last from cron_run where job_id = new.job_id and id <> new.id
    and scheduled_at <= new.scheduled_at and status in ('succeeded', 'failed', 'timeout', 'unknown')
    order by scheduled_at desc, id desc limit 1;
  new.failing_since := coalesce(new.finished_at, now());
  if last.status <> 'succeeded' then
    update cron_run set grouped = true where id = last.id and not grouped;
    new.failures := last.failures + 1;
    new.failing_since := coalesce(last.failing_since, last.finished_at);
  end if;
  return new;
end $$;
create trigger failure_grouped before update of status on cron_run for each row
  when (new.status in ('failed', 'timeout', 'unknown') and old.status is distinct from new.status)
  execute function group_cron_failure();

-- Crashes of this replica in this deployment; `restarts` counts only those in a row, for the pause before the next start.
alter table replica add column crashes integer not null default 0;

-- What is wrong with the requests that a project's active deployment got in the last five minutes; null when nothing is. `state` is the last
-- health that was announced, since `since`.
create table project_health (
  project_id text primary key references project,
  org_id text not null references organization,
  state text not null default 'empty',
  since timestamptz not null default now(),
  traffic jsonb
);
create index project_health_of_org on project_health (org_id);

-- Pages and agents read the project again.
create trigger change_noted after insert or update on project_health for each row execute function note_change('deployment');
