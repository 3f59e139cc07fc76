-- Where an organization wants to hear of what happens.
create table webhook (
  id text primary key,
  org_id text not null references organization,
  name text not null,
  -- The address of a chat's webhook is a secret by itself; `host` is what lists show of it.
  sealed_url bytea not null,
  host text not null,
  format text not null check (format in ('json', 'slack', 'discord')),
  events text[] not null,
  sealed_secret bytea not null,
  -- Events that are queued in one hour; the ones after them are dropped.
  hourly_limit integer not null,
  -- Failed attempts since the last delivery, and since when.
  failures integer not null default 0,
  failing_since timestamptz,
  disabled_at timestamptz,
  disabled_reason text,
  created_at timestamptz not null default now()
);
create index webhook_of_org on webhook (org_id, id desc);
create index webhook_given_up on webhook (disabled_at) where disabled_reason is not null;

-- One event for one webhook. The triggers below write it in the transaction of the event.
create table webhook_delivery (
  -- Sorts by time.
  id text primary key default 'whd_' || lpad(to_hex((extract(epoch from clock_timestamp()) * 1000000)::bigint), 14, '0')
    || substr(replace(gen_random_uuid()::text, '-', ''), 1, 16),
  org_id text not null references organization,
  webhook_id text not null references webhook on delete cascade,
  event text not null,
  data jsonb not null,
  status text not null default 'queued' check (status in ('queued', 'delivered', 'failed', 'dropped')),
  -- What became of each attempt, the first one first.
  attempts jsonb not null default '[]',
  next_attempt_at timestamptz not null default now(),
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now(),
  finished_at timestamptz
);
create index webhook_delivery_due on webhook_delivery (next_attempt_at) where status = 'queued';
create index webhook_delivery_leased on webhook_delivery (lease_until) where lease_until is not null;
create index webhook_delivery_of_webhook on webhook_delivery (webhook_id, id desc);
create index webhook_delivery_recent on webhook_delivery (webhook_id, created_at);
create index webhook_delivery_old on webhook_delivery (created_at);

-- Owners' tokens that had every right of an owner so far have the new ones too.
update api_token set scopes = scopes || '{webhooks:read,webhooks:write}'::text[]
where role = 'owner' and scopes @> '{projects:read,projects:write,deployments:read,deployments:write,env:read,env:write,domains:read,domains:write,cron:read,cron:write,database:read,database:write,data:read,data:write,backups:read,backups:write,logs:read,metrics:read,activity:read,tokens:read,tokens:write,ssh-keys:read,ssh-keys:write,approvals:read}'::text[];

create function queue_webhook_event(org text, kind text, happened text, said jsonb) returns void language plpgsql as $$
declare
  hook record;
  recent integer;
begin
  for hook in select id, hourly_limit from webhook where org_id = org and disabled_at is null and kind = any(events) loop
    select count(*) into recent from webhook_delivery
    where webhook_id = hook.id and created_at > now() - interval '1 hour';
    -- The first one over the limit stays as a row, so that the list shows that some are missing.
    if recent <= hook.hourly_limit then
      insert into webhook_delivery (org_id, webhook_id, event, data, status, finished_at)
      values (org, hook.id, happened, jsonb_strip_nulls(said), case when recent < hook.hourly_limit then 'queued' else 'dropped' end,
        case when recent < hook.hourly_limit then null else now() end);
      perform pg_notify('berth', 'webhooks:');
    end if;
  end loop;
end $$;

create function slug_of_project(given text) returns text language sql stable as $$
  select slug from project where id = given
$$;

create function webhook_event_of_deployment() returns trigger language plpgsql as $$
begin
  perform queue_webhook_event(new.org_id, 'deployment',
    case new.status when 'active' then 'deployment.activated' else 'deployment.failed' end,
    jsonb_build_object('project', slug_of_project(new.project_id), 'deployment', new.number, 'trigger', new.trigger, 'commit', new.commit,
      'build_id', new.build_id, 'stage', new.failure->>'stage', 'code', new.failure->>'code', 'summary', new.failure->>'summary',
      'hint', new.failure->>'hint'));
  return null;
end $$;
create trigger webhook_event after update of status on deployment for each row
  when (new.status is distinct from old.status and new.status in ('active', 'failed')) execute function webhook_event_of_deployment();

create function webhook_event_of_build() returns trigger language plpgsql as $$
begin
  perform queue_webhook_event(new.org_id, 'build', 'build.' || new.status,
    jsonb_build_object('project', slug_of_project(new.project_id), 'build_id', new.id, 'build', new.number, 'branch', new.branch,
      'commit', new.commit, 'message', new.message, 'requested_by', new.requested_by, 'stage', new.failure->>'stage',
      'code', new.failure->>'code', 'summary', new.failure->>'summary', 'hint', new.failure->>'hint'));
  return null;
end $$;
create trigger webhook_event after update of status on build for each row
  when (new.status is distinct from old.status and new.status in ('succeeded', 'failed')) execute function webhook_event_of_build();

create function webhook_event_of_backup() returns trigger language plpgsql as $$
begin
  perform queue_webhook_event(new.org_id, 'backup', 'backup.' || new.status,
    jsonb_build_object('project', slug_of_project(new.project_id), 'backup_id', new.id, 'origin', new.origin, 'size_bytes', new.size_bytes,
      'summary', new.problem));
  return null;
end $$;
create trigger webhook_event after update of status on backup for each row
  when (new.status is distinct from old.status and new.status in ('completed', 'failed')) execute function webhook_event_of_backup();

create function webhook_event_of_verification() returns trigger language plpgsql as $$
begin
  perform queue_webhook_event(new.org_id, 'backup', 'backup.' || case new.verification when 'verified' then 'verified' else 'damaged' end,
    jsonb_build_object('project', slug_of_project(new.project_id), 'backup_id', new.id, 'summary', new.verification_problem));
  return null;
end $$;
create trigger webhook_event_of_verification after update of verification on backup for each row
  when (new.verification is not null and new.verification is distinct from old.verification)
  execute function webhook_event_of_verification();

create function webhook_event_of_certificate() returns trigger language plpgsql as $$
declare
  named record;
begin
  for named in select org_id, project_id from domain where hostname = new.hostname loop
    perform queue_webhook_event(named.org_id, 'certificate', case new.status when 'active' then 'certificate.issued' else 'certificate.failed' end,
      jsonb_build_object('project', slug_of_project(named.project_id), 'hostname', new.hostname, 'summary', new.detail,
        'not_after', new.not_after));
  end loop;
  return null;
end $$;
create trigger webhook_event after update of status on certificate for each row
  when (new.status is distinct from old.status and new.status in ('active', 'failed')) execute function webhook_event_of_certificate();

-- The link that decides stays with the operator's channels.
create function webhook_event_of_approval() returns trigger language plpgsql as $$
begin
  perform queue_webhook_event(new.org_id, 'approval', 'approval.pending',
    jsonb_build_object('approval_id', new.id, 'route', new.route, 'target', new.target, 'token', new.token_name,
      'project', slug_of_project(new.project_id), 'expires_at', new.expires_at));
  return null;
end $$;
create trigger webhook_event after insert on approval for each row
  when (new.status = 'pending') execute function webhook_event_of_approval();

-- Alerts of projects have `organization/project` or a hostname as their subject; those of the platform itself go to its operator alone.
create function webhook_event_of_alert() returns trigger language plpgsql as $$
declare
  owner text;
begin
  if position('/' in new.subject) > 0 then
    select id into owner from organization where slug = split_part(new.subject, '/', 1);
  else
    select org_id into owner from domain where hostname = new.subject limit 1;
  end if;
  if owner is not null and new.machine = '' then
    perform queue_webhook_event(owner, 'alert', case when new.resolved_at is null then 'alert.opened' else 'alert.resolved' end,
      jsonb_build_object('alert_id', new.id, 'check', new.name, 'subject', new.subject, 'severity', new.severity, 'summary', new.summary,
        'hint', new.hint));
  end if;
  return null;
end $$;
create trigger webhook_event after insert on alert for each row execute function webhook_event_of_alert();
create trigger webhook_event_of_end after update of resolved_at on alert for each row
  when (old.resolved_at is null and new.resolved_at is not null) execute function webhook_event_of_alert();
