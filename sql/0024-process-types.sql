-- Every line of a Procfile is a process type: a replica belongs to one type of a deployment. Only `web` has routes.
alter table replica add column process text not null default 'web';
alter table replica drop constraint replica_pkey, add primary key (deployment_id, process, ordinal);

alter table replica_usage add column process text not null default 'web';
alter table replica_usage drop constraint replica_usage_pkey, add primary key (deployment_id, process, ordinal);
alter table replica_metric add column process text not null default 'web';
alter table replica_metric drop constraint replica_metric_pkey, add primary key (project_id, bucket_seconds, at, process, ordinal);

-- The types of the active deployment that must not run twice have ended, or are to end, so that those of this one can start.
alter table deployment add column taking_over boolean not null default false;
alter table deployment drop constraint deployment_trigger_check,
  add constraint deployment_trigger_check check (trigger in ('push', 'redeploy', 'rollback', 'variables', 'restart'));

-- What a project says of its types. The replicas of `web` are the project's own.
create table process_setting (
  project_id text not null references project on delete cascade,
  process text not null,
  org_id text not null references organization,
  replicas integer check (replicas between 0 and 8),
  -- Whether old and new ones may run beside each other while a deployment is switched.
  overlap boolean not null default false,
  -- Replicas that were started before this are started anew, one after the other.
  restart_at timestamptz,
  primary key (project_id, process)
);

create view deployment_process as
  select d.id as deployment_id, d.org_id, d.project_id, t.process, t.command,
    case when t.process = 'web' then p.replicas else coalesce(s.replicas, 1) end as replicas,
    t.process = 'web' or coalesce(s.overlap, false) as overlap, s.restart_at
  from deployment d join project p on p.id = d.project_id
  cross join lateral (
    select 'web' as process, d.image->>'web_command' as command where d.image->'web_command' is distinct from 'null'::jsonb
    union all select key, value from jsonb_each_text(d.image->'processes')) t
  left join process_setting s on s.project_id = d.project_id and s.process = t.process;
