-- Generated from the migrations by `npm run gen`. Do not edit.

CREATE FUNCTION public.can_sign_in(wanted text) RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
  select exists (select from person where id = wanted and disabled_at is null) and (
    exists (select from passkey where person_id = wanted)
    or exists (select from identity join provider using (issuer) where person_id = wanted))
$$;

CREATE FUNCTION public.certificates_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.group_crash() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.group_cron_failure() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.mark_route_changed(id text) RETURNS void
    LANGUAGE sql
    AS $$
  insert into route_change (project_id, changed_by) values (id, pg_current_xact_id())
  on conflict (project_id) do update set changed_by = excluded.changed_by
$$;

CREATE FUNCTION public.note_certificate_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if (new.status, new.detail, new.not_after) is distinct from (old.status, old.detail, old.not_after) then
    update domain set dns_status = dns_status where hostname = new.hostname;
  end if;
  return null;
end $$;

CREATE FUNCTION public.note_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
  changed record;
begin
  changed := coalesce(new, old);
  insert into change (org_id, project_id, noun) values (changed.org_id, to_jsonb(changed) ->> 'project_id', tg_argv[0]);
  perform pg_notify('berth', 'changes:' || changed.org_id);
  return null;
end $$;

CREATE FUNCTION public.queue_webhook_event(org text, kind text, happened text, said jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.replica_knows_its_project() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  select project_id into new.project_id from deployment where id = new.deployment_id;
  return new;
end $$;

CREATE FUNCTION public.route_of_deployment_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  if new.status <> 'pending' then
    perform mark_route_changed(new.project_id);
  end if;
  return null;
end $$;

CREATE FUNCTION public.route_of_domain_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  perform mark_route_changed(coalesce(new.project_id, old.project_id));
  return null;
end $$;

CREATE FUNCTION public.route_of_organization_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  perform mark_route_changed(id) from project where org_id = new.id;
  return null;
end $$;

CREATE FUNCTION public.route_of_project_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  perform mark_route_changed(coalesce(new.id, old.id));
  return null;
end $$;

CREATE FUNCTION public.route_of_replica_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  perform mark_route_changed(coalesce(new.project_id, old.project_id));
  return null;
end $$;

CREATE FUNCTION public.slug_of_project(given text) RETURNS text
    LANGUAGE sql STABLE
    AS $$
  select slug from project where id = given
$$;

CREATE FUNCTION public.webhook_event_of_alert() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.webhook_event_of_approval() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  perform queue_webhook_event(new.org_id, 'approval', 'approval.pending',
    jsonb_build_object('approval_id', new.id, 'route', new.route, 'target', new.target, 'token', new.token_name,
      'project', slug_of_project(new.project_id), 'expires_at', new.expires_at));
  return null;
end $$;

CREATE FUNCTION public.webhook_event_of_backup() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  perform queue_webhook_event(new.org_id, 'backup', 'backup.' || new.status,
    jsonb_build_object('project', slug_of_project(new.project_id), 'backup_id', new.id, 'origin', new.origin, 'size_bytes', new.size_bytes,
      'summary', new.problem));
  return null;
end $$;

CREATE FUNCTION public.webhook_event_of_build() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  perform queue_webhook_event(new.org_id, 'build', 'build.' || new.status,
    jsonb_build_object('project', slug_of_project(new.project_id), 'build_id', new.id, 'build', new.number, 'branch', new.branch,
      'commit', new.commit, 'message', new.message, 'requested_by', new.requested_by, 'stage', new.failure->>'stage',
      'code', new.failure->>'code', 'summary', new.failure->>'summary', 'hint', new.failure->>'hint'));
  return null;
end $$;

CREATE FUNCTION public.webhook_event_of_certificate() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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

CREATE FUNCTION public.webhook_event_of_deployment() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  perform queue_webhook_event(new.org_id, 'deployment',
    case new.status when 'active' then 'deployment.activated' else 'deployment.failed' end,
    jsonb_build_object('project', slug_of_project(new.project_id), 'deployment', new.number, 'trigger', new.trigger, 'commit', new.commit,
      'build_id', new.build_id, 'stage', new.failure->>'stage', 'code', new.failure->>'code', 'summary', new.failure->>'summary',
      'hint', new.failure->>'hint'));
  return null;
end $$;

CREATE FUNCTION public.webhook_event_of_verification() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  perform queue_webhook_event(new.org_id, 'backup', 'backup.' || case new.verification when 'verified' then 'verified' else 'damaged' end,
    jsonb_build_object('project', slug_of_project(new.project_id), 'backup_id', new.id, 'summary', new.verification_problem));
  return null;
end $$;

CREATE TABLE public.acme_account (
    directory text NOT NULL,
    sealed_key bytea NOT NULL,
    url text,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.acme_challenge (
    token text NOT NULL,
    hostname text NOT NULL,
    answer text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.activity (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text,
    actor_token_id text,
    actor_name text NOT NULL,
    action text NOT NULL,
    target text,
    detail jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    grouped boolean DEFAULT false NOT NULL
);

CREATE TABLE public.alert (
    id text NOT NULL,
    name text NOT NULL,
    machine text NOT NULL,
    subject text NOT NULL,
    severity text NOT NULL,
    summary text NOT NULL,
    hint text,
    opened_at timestamp with time zone NOT NULL,
    resolved_at timestamp with time zone,
    notify_at timestamp with time zone NOT NULL,
    told_severity text,
    CONSTRAINT alert_severity_check CHECK ((severity = ANY (ARRAY['warning'::text, 'critical'::text]))),
    CONSTRAINT alert_told_severity_check CHECK ((told_severity = ANY (ARRAY['warning'::text, 'critical'::text])))
);

CREATE TABLE public.api_token (
    id text NOT NULL,
    org_id text NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    platform_admin boolean DEFAULT false NOT NULL,
    scopes text[] NOT NULL,
    approval_mode boolean DEFAULT false NOT NULL,
    prefix text NOT NULL,
    hash bytea NOT NULL,
    created_by text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    project_ids text[],
    kind text DEFAULT 'token'::text NOT NULL,
    person_id text,
    CONSTRAINT api_token_kind_check CHECK ((kind = ANY (ARRAY['token'::text, 'member'::text, 'cli'::text, 'mcp'::text]))),
    CONSTRAINT api_token_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'member'::text])))
);

CREATE TABLE public.approval (
    id text NOT NULL,
    org_id text NOT NULL,
    token_id text NOT NULL,
    token_name text NOT NULL,
    fingerprint bytea NOT NULL,
    route text NOT NULL,
    method text NOT NULL,
    path text NOT NULL,
    resource text NOT NULL,
    project_id text,
    target text,
    request jsonb NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    link_hash bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    decided_at timestamp with time zone,
    consumed_at timestamp with time zone,
    CONSTRAINT approval_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text, 'consumed'::text, 'expired'::text])))
);

CREATE TABLE public.archive_chain (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    database_id text NOT NULL,
    log_system text NOT NULL,
    timeline integer NOT NULL,
    segment_bytes integer NOT NULL,
    storage text NOT NULL,
    first_position bigint NOT NULL,
    stored_position bigint NOT NULL,
    stored_until timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    end_reason text,
    expired_at timestamp with time zone
);

CREATE TABLE public.archive_copy (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    chain_id text NOT NULL,
    status text DEFAULT 'copying'::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    storage_key text NOT NULL,
    restorable_from timestamp with time zone,
    start_position bigint,
    stop_position bigint,
    backup_label text,
    size_bytes bigint,
    sha256 text,
    log_bytes bigint DEFAULT 0 NOT NULL,
    CONSTRAINT archive_copy_status_check CHECK ((status = ANY (ARRAY['copying'::text, 'completed'::text, 'damaged'::text])))
);

CREATE TABLE public.archive_drill (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    origin text NOT NULL,
    status text DEFAULT 'running'::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    problem text,
    evidence jsonb,
    sha256 text,
    CONSTRAINT archive_drill_origin_check CHECK ((origin = ANY (ARRAY['manual'::text, 'daily'::text]))),
    CONSTRAINT archive_drill_status_check CHECK ((status = ANY (ARRAY['running'::text, 'passed'::text, 'mismatch'::text, 'failed'::text])))
);

CREATE TABLE public.archive_loss (
    chain_id text NOT NULL,
    "position" bigint NOT NULL,
    until timestamp with time zone
);

CREATE TABLE public.archive_mark (
    chain_id text NOT NULL,
    "position" bigint NOT NULL,
    at timestamp with time zone NOT NULL
);

CREATE TABLE public.backup (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    status text DEFAULT 'running'::text NOT NULL,
    origin text NOT NULL,
    storage text,
    storage_key text,
    size_bytes bigint,
    sha256 text,
    row_counts jsonb,
    engine_version text,
    problem_code text,
    problem text,
    verification text,
    comparison jsonb,
    verification_problem text,
    verified_at timestamp with time zone,
    expired_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    content text DEFAULT 'database'::text NOT NULL,
    file_index text,
    CONSTRAINT backup_content_check CHECK ((content = ANY (ARRAY['database'::text, 'files'::text]))),
    CONSTRAINT backup_origin_check CHECK ((origin = ANY (ARRAY['manual'::text, 'daily'::text, 'final'::text, 'release'::text]))),
    CONSTRAINT backup_status_check CHECK ((status = ANY (ARRAY['running'::text, 'completed'::text, 'failed'::text]))),
    CONSTRAINT backup_verification_check CHECK ((verification = ANY (ARRAY['verified'::text, 'mismatch'::text, 'failed'::text])))
);

CREATE TABLE public.backup_operation (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    backup_id text,
    kind text NOT NULL,
    status text DEFAULT 'running'::text NOT NULL,
    database_name text,
    phase text DEFAULT 'waiting'::text NOT NULL,
    bytes_done bigint DEFAULT 0 NOT NULL,
    tables_done integer DEFAULT 0 NOT NULL,
    tables_total integer,
    attempts integer DEFAULT 0 NOT NULL,
    problem_code text,
    problem text,
    lease_owner text,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    restore_to timestamp with time zone,
    path text,
    folder text,
    replaces boolean DEFAULT false NOT NULL,
    CONSTRAINT backup_operation_kind_check CHECK ((kind = ANY (ARRAY['backup'::text, 'restore'::text, 'verify'::text]))),
    CONSTRAINT backup_operation_phase_check CHECK ((phase = ANY (ARRAY['waiting'::text, 'dumping'::text, 'storing'::text, 'checking'::text, 'restoring'::text, 'counting'::text, 'cleaning'::text]))),
    CONSTRAINT backup_operation_status_check CHECK ((status = ANY (ARRAY['running'::text, 'completed'::text, 'failed'::text])))
);

CREATE TABLE public.build (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    number integer NOT NULL,
    status text DEFAULT 'queued'::text NOT NULL,
    origin text NOT NULL,
    commit text NOT NULL,
    branch text NOT NULL,
    message text NOT NULL,
    old_commit text,
    requested_by text,
    image_ref text,
    image jsonb,
    failure jsonb,
    lease_owner text,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    settings jsonb,
    runtime text,
    author text,
    copies_data boolean DEFAULT false NOT NULL,
    token_id text,
    promoted_from text,
    rehearse_only boolean DEFAULT false NOT NULL,
    approval_id text,
    CONSTRAINT build_origin_check CHECK ((origin = ANY (ARRAY['push'::text, 'upload'::text, 'follow'::text, 'redeploy'::text]))),
    CONSTRAINT build_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text, 'superseded'::text])))
);

CREATE TABLE public.certificate (
    id text NOT NULL,
    hostname text NOT NULL,
    challenge text NOT NULL,
    wanted boolean DEFAULT true NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    detail text DEFAULT 'No attempt was made yet.'::text NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone DEFAULT now() NOT NULL,
    ordered_at timestamp with time zone,
    chain_pem text,
    sealed_key bytea,
    not_before timestamp with time zone,
    not_after timestamp with time zone,
    lease_owner text,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    steps jsonb DEFAULT '[]'::jsonb NOT NULL,
    confirmed_at timestamp with time zone,
    org_id text,
    zone text,
    first_issued_at timestamp with time zone,
    CONSTRAINT certificate_challenge_check CHECK ((challenge = ANY (ARRAY['http-01'::text, 'dns-01'::text]))),
    CONSTRAINT certificate_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'issuing'::text, 'active'::text, 'failed'::text])))
);

CREATE TABLE public.certificate_mark (
    changes bigint NOT NULL
);

CREATE TABLE public.change (
    xid bigint DEFAULT ((pg_current_xact_id())::text)::bigint NOT NULL,
    org_id text NOT NULL,
    project_id text,
    noun text NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.commit_status (
    build_id text NOT NULL,
    follow_id text NOT NULL,
    shown text,
    failures integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.control_plane (
    name text NOT NULL,
    owner text NOT NULL,
    roles text[] NOT NULL,
    url text NOT NULL,
    seen_at timestamp with time zone NOT NULL
);

CREATE TABLE public.cron_job (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    name text NOT NULL,
    schedule text NOT NULL,
    path text NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    next_run_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    command text,
    previous jsonb
);

CREATE TABLE public.cron_run (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    job_id text NOT NULL,
    deployment_id text,
    trigger text NOT NULL,
    scheduled_at timestamp with time zone NOT NULL,
    status text NOT NULL,
    reason text,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    http_status integer,
    duration_ms integer,
    response_excerpt text,
    lease_owner text,
    lease_until timestamp with time zone,
    grouped boolean DEFAULT false NOT NULL,
    failures integer DEFAULT 1 NOT NULL,
    failing_since timestamp with time zone,
    exit_code integer,
    CONSTRAINT cron_run_status_check CHECK ((status = ANY (ARRAY['running'::text, 'succeeded'::text, 'failed'::text, 'timeout'::text, 'skipped'::text, 'missed'::text, 'unknown'::text]))),
    CONSTRAINT cron_run_trigger_check CHECK ((trigger = ANY (ARRAY['schedule'::text, 'manual'::text])))
);

CREATE TABLE public.database_branch (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    used_by text,
    name text NOT NULL,
    status text DEFAULT 'copying'::text NOT NULL,
    shows timestamp with time zone,
    mask_commit text,
    role_name text NOT NULL,
    database_name text NOT NULL,
    sealed_password bytea NOT NULL,
    access text DEFAULT 'open'::text NOT NULL,
    method text,
    copy_bytes bigint,
    expected_seconds integer,
    size_bytes bigint,
    size_limit_bytes bigint,
    host text,
    port integer,
    engine_version text,
    problem_code text,
    problem text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ready_at timestamp with time zone,
    expires_at timestamp with time zone NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    lease_owner text,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL,
    CONSTRAINT database_branch_access_check CHECK ((access = ANY (ARRAY['open'::text, 'read_only'::text]))),
    CONSTRAINT database_branch_method_check CHECK ((method = ANY (ARRAY['clone'::text, 'copy'::text]))),
    CONSTRAINT database_branch_status_check CHECK ((status = ANY (ARRAY['copying'::text, 'ready'::text, 'failed'::text, 'deleting'::text])))
);

CREATE TABLE public.database_tunnel (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    token_id text NOT NULL,
    purpose text NOT NULL,
    format text,
    database_name text,
    status text DEFAULT 'waiting'::text NOT NULL,
    role_name text,
    close_reason text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    opened_at timestamp with time zone,
    closed_at timestamp with time zone,
    alive_until timestamp with time zone DEFAULT (now() + '00:01:00'::interval) NOT NULL,
    backup_id text,
    encrypted boolean DEFAULT false NOT NULL,
    branch text,
    CONSTRAINT database_tunnel_format_check CHECK ((format = ANY (ARRAY['custom'::text, 'plain'::text]))),
    CONSTRAINT database_tunnel_purpose_check CHECK ((purpose = ANY (ARRAY['session'::text, 'dump'::text, 'import'::text]))),
    CONSTRAINT database_tunnel_status_check CHECK ((status = ANY (ARRAY['waiting'::text, 'open'::text, 'closed'::text])))
);

CREATE TABLE public.deployment (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    number integer NOT NULL,
    status text DEFAULT 'pending'::text NOT NULL,
    trigger text NOT NULL,
    build_id text NOT NULL,
    commit text NOT NULL,
    image_ref text NOT NULL,
    image jsonb NOT NULL,
    port integer,
    health_path text,
    sealed_variables bytea NOT NULL,
    rolled_back_from text,
    restored_from text,
    failure jsonb,
    lease_owner text,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    activated_at timestamp with time zone,
    retired_at timestamp with time zone,
    finished_at timestamp with time zone,
    image_pruned_at timestamp with time zone,
    variables_changed_at timestamp with time zone,
    database_name text,
    restored_variables jsonb,
    switching boolean DEFAULT false NOT NULL,
    taking_over boolean DEFAULT false NOT NULL,
    rehearse_only boolean DEFAULT false NOT NULL,
    CONSTRAINT deployment_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'starting'::text, 'active'::text, 'retired'::text, 'failed'::text, 'superseded'::text]))),
    CONSTRAINT deployment_trigger_check CHECK ((trigger = ANY (ARRAY['push'::text, 'upload'::text, 'follow'::text, 'redeploy'::text, 'rollback'::text, 'variables'::text, 'restart'::text])))
);

CREATE TABLE public.process_setting (
    project_id text NOT NULL,
    process text NOT NULL,
    org_id text NOT NULL,
    replicas integer,
    overlap boolean DEFAULT false NOT NULL,
    restart_at timestamp with time zone,
    CONSTRAINT process_setting_replicas_check CHECK (((replicas >= 0) AND (replicas <= 8)))
);

CREATE TABLE public.project (
    id text NOT NULL,
    org_id text NOT NULL,
    number integer NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    hostname text NOT NULL,
    port integer,
    health_path text,
    replicas integer DEFAULT 1 NOT NULL,
    deploy_branch text,
    sealed_cron_secret bytea NOT NULL,
    variables_changed_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    deleted_at timestamp with time zone,
    purged_at timestamp with time zone,
    storage_limit_bytes bigint,
    database_limit_bytes bigint,
    images_limit_bytes bigint,
    root text,
    watch text[],
    maintenance_since timestamp with time zone,
    maintenance_message text,
    storage boolean DEFAULT true NOT NULL,
    backups_limit_bytes bigint,
    start_seconds integer,
    sleep_after_minutes integer,
    sleep text,
    sleep_at timestamp with time zone,
    preview_of text,
    git_branch text,
    preview_expires_at timestamp with time zone,
    previews text[],
    preview_variables text[],
    preview_data text DEFAULT 'empty'::text NOT NULL,
    agents text DEFAULT 'deploy'::text NOT NULL,
    CONSTRAINT project_agents_check CHECK ((agents = ANY (ARRAY['deploy'::text, 'preview'::text]))),
    CONSTRAINT project_port_check CHECK (((port >= 1) AND (port <= 65535))),
    CONSTRAINT project_preview_check CHECK ((((preview_of IS NULL) = (git_branch IS NULL)) AND ((preview_of IS NULL) = (preview_expires_at IS NULL)) AND ((preview_of IS NULL) OR (previews IS NULL)))),
    CONSTRAINT project_preview_data_check CHECK ((preview_data = ANY (ARRAY['empty'::text, 'branch'::text, 'masked'::text]))),
    CONSTRAINT project_replicas_check CHECK (((replicas >= 1) AND (replicas <= 8))),
    CONSTRAINT project_sleep_check CHECK ((sleep = ANY (ARRAY['asleep'::text, 'waking'::text]))),
    CONSTRAINT project_start_seconds_check CHECK (((start_seconds >= 1) AND (start_seconds <= 900)))
);

CREATE VIEW public.deployment_process AS
 SELECT d.id AS deployment_id,
    d.org_id,
    d.project_id,
    t.process,
    t.command,
        CASE
            WHEN (t.process = 'web'::text) THEN p.replicas
            ELSE COALESCE(s.replicas, 1)
        END AS replicas,
    ((t.process = 'web'::text) OR COALESCE(s.overlap, false)) AS overlap,
    s.restart_at
   FROM (((public.deployment d
     JOIN public.project p ON ((p.id = d.project_id)))
     CROSS JOIN LATERAL ( SELECT 'web'::text AS process,
            (d.image ->> 'web_command'::text) AS command
          WHERE ((d.image -> 'web_command'::text) IS DISTINCT FROM 'null'::jsonb)
        UNION ALL
         SELECT jsonb_each_text.key,
            jsonb_each_text.value
           FROM jsonb_each_text((d.image -> 'processes'::text)) jsonb_each_text(key, value)) t)
     LEFT JOIN public.process_setting s ON (((s.project_id = d.project_id) AND (s.process = t.process))));

CREATE TABLE public.disk_use (
    project_id text NOT NULL,
    org_id text NOT NULL,
    storage_bytes bigint,
    measured_at timestamp with time zone,
    next_at timestamp with time zone NOT NULL,
    database_bytes bigint,
    images_bytes bigint,
    storage_access text DEFAULT 'open'::text NOT NULL,
    database_access text DEFAULT 'open'::text NOT NULL,
    database_compacting boolean DEFAULT false NOT NULL,
    database_ceiling_bytes bigint,
    database_closings integer DEFAULT 0 NOT NULL,
    database_reopens_at timestamp with time zone,
    CONSTRAINT disk_use_database_access_check CHECK ((database_access = ANY (ARRAY['open'::text, 'read_only'::text, 'closed'::text]))),
    CONSTRAINT disk_use_storage_access_check CHECK ((storage_access = ANY (ARRAY['open'::text, 'read_only'::text])))
);

CREATE TABLE public.domain (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    hostname text NOT NULL,
    zone text NOT NULL,
    dns_status text DEFAULT 'pending'::text NOT NULL,
    dns_detail text NOT NULL,
    txt_seen_at timestamp with time zone,
    check_begun_at timestamp with time zone,
    checked_at timestamp with time zone,
    next_check_at timestamp with time zone DEFAULT now() NOT NULL,
    verified_at timestamp with time zone,
    lost_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    redirect_id text,
    CONSTRAINT domain_dns_status_check CHECK ((dns_status = ANY (ARRAY['pending'::text, 'ok'::text, 'mismatch'::text])))
);

CREATE TABLE public.domain_claim (
    org_id text NOT NULL,
    hostname text NOT NULL,
    zone text NOT NULL,
    proof text NOT NULL,
    held_at timestamp with time zone,
    verified_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    asked_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.earlier_name (
    org_id text NOT NULL,
    project_id text NOT NULL,
    slug text NOT NULL,
    hostname text NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE public.edge (
    id text NOT NULL,
    machine text NOT NULL,
    kind text NOT NULL,
    route_version bigint NOT NULL,
    open_requests jsonb NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    certificate_version bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.edge_counter (
    counter text NOT NULL,
    project_id text NOT NULL,
    requests bigint NOT NULL,
    classes bigint[] NOT NULL,
    bytes_in bigint NOT NULL,
    bytes_out bigint NOT NULL,
    latencies bigint[] NOT NULL,
    latency_sum_ms double precision NOT NULL,
    seen_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.follow_delivery (
    id text NOT NULL,
    org_id text NOT NULL,
    follow_id text NOT NULL,
    source text NOT NULL,
    event text NOT NULL,
    status text NOT NULL,
    reason text,
    commit text,
    build_id text,
    signed boolean NOT NULL,
    received_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    branch text,
    CONSTRAINT follow_delivery_source_check CHECK ((source = ANY (ARRAY['hook'::text, 'manual'::text, 'poll'::text]))),
    CONSTRAINT follow_delivery_status_check CHECK ((status = ANY (ARRAY['waiting'::text, 'deployed'::text, 'ignored'::text])))
);

CREATE TABLE public.idempotency_key (
    org_id text NOT NULL,
    token_id text NOT NULL,
    key text NOT NULL,
    request_hash bytea NOT NULL,
    attempt integer DEFAULT 1 NOT NULL,
    held_until timestamp with time zone NOT NULL,
    committed boolean DEFAULT false NOT NULL,
    status_code integer,
    sealed_answer bytea,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE public.identity (
    id text NOT NULL,
    person_id text NOT NULL,
    issuer text NOT NULL,
    subject text NOT NULL,
    label text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.image_pruning (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    lease_owner text NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    fence integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.invite (
    id text NOT NULL,
    org_id text NOT NULL,
    hash bytea NOT NULL,
    email text,
    role text NOT NULL,
    platform_admin boolean DEFAULT false NOT NULL,
    project_ids text[],
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    used_by text,
    revoked_at timestamp with time zone,
    CONSTRAINT invite_check CHECK (((role = 'member'::text) OR (project_ids IS NULL))),
    CONSTRAINT invite_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'member'::text])))
);

CREATE TABLE public.machine (
    name text NOT NULL,
    description jsonb NOT NULL,
    started_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL
);

CREATE TABLE public.machine_metric (
    machine text NOT NULL,
    bucket_seconds integer NOT NULL,
    at timestamp with time zone NOT NULL,
    samples integer NOT NULL,
    cpus_sum double precision NOT NULL,
    memory_bytes_sum bigint NOT NULL,
    disk_bytes_most bigint NOT NULL
);

CREATE TABLE public.monitor_check (
    name text NOT NULL,
    machine text NOT NULL,
    subject text NOT NULL,
    status text NOT NULL,
    detail text NOT NULL,
    hint text,
    since timestamp with time zone NOT NULL,
    bad_since timestamp with time zone,
    last_ok_at timestamp with time zone,
    checked_at timestamp with time zone NOT NULL,
    CONSTRAINT monitor_check_status_check CHECK ((status = ANY (ARRAY['off'::text, 'ok'::text, 'warn'::text, 'fail'::text, 'unknown'::text])))
);

CREATE TABLE public.notification (
    id text NOT NULL,
    org_id text,
    notifier text NOT NULL,
    kind text NOT NULL,
    sealed_message bytea,
    status text DEFAULT 'queued'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_error text,
    next_attempt_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    lease_owner text,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT notification_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'delivered'::text, 'given_up'::text])))
);

CREATE TABLE public.oauth_client (
    id text NOT NULL,
    name text NOT NULL,
    redirect_uris text[] NOT NULL,
    address text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone
);

CREATE TABLE public.oauth_grant (
    hash bytea NOT NULL,
    client_id text NOT NULL,
    redirect_uri text,
    challenge text,
    user_code_hash bytea,
    device text DEFAULT ''::text NOT NULL,
    opened_by text,
    token_id text,
    token_expires_at timestamp with time zone,
    denied_at timestamp with time zone,
    used_at timestamp with time zone,
    polled_at timestamp with time zone,
    expires_at timestamp with time zone NOT NULL,
    address text
);

CREATE TABLE public.organization (
    id text NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    max_projects integer DEFAULT 10 NOT NULL,
    suspended_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    is_first boolean DEFAULT false NOT NULL,
    codes_since timestamp with time zone DEFAULT now() NOT NULL,
    codes_mailed integer DEFAULT 0 NOT NULL,
    CONSTRAINT organization_max_projects_check CHECK ((max_projects >= 0))
);

CREATE TABLE public.page_look (
    project_id text NOT NULL,
    org_id text NOT NULL,
    next_at timestamp with time zone NOT NULL,
    looked_at timestamp with time zone,
    http_status integer,
    failure text,
    dns_ms double precision,
    connect_ms double precision,
    first_byte_ms double precision,
    total_ms double precision,
    tls_ms double precision
)
WITH (fillfactor='70');

CREATE TABLE public.passkey (
    credential_id text NOT NULL,
    person_id text NOT NULL,
    public_key bytea NOT NULL,
    counter bigint NOT NULL,
    transports text[] DEFAULT '{}'::text[] NOT NULL,
    rp_id text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone,
    id text DEFAULT ('pky_'::text || replace((gen_random_uuid())::text, '-'::text, ''::text)) NOT NULL,
    name text DEFAULT 'Passkey'::text NOT NULL
);

CREATE TABLE public.person (
    id text NOT NULL,
    name text NOT NULL,
    email text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    disabled_at timestamp with time zone
);

CREATE TABLE public.platform_backup (
    id text NOT NULL,
    origin text NOT NULL,
    status text DEFAULT 'running'::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    taken_at timestamp with time zone,
    version text,
    recipient text,
    storage text,
    storage_key text,
    size_bytes bigint,
    sha256 text,
    problem text,
    CONSTRAINT platform_backup_origin_check CHECK ((origin = ANY (ARRAY['manual'::text, 'daily'::text]))),
    CONSTRAINT platform_backup_status_check CHECK ((status = ANY (ARRAY['running'::text, 'completed'::text, 'failed'::text])))
);

CREATE TABLE public.platform_fact (
    key text NOT NULL,
    value jsonb NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.preview_comment (
    project_id text NOT NULL,
    org_id text NOT NULL,
    follow_id text NOT NULL,
    request integer,
    request_url text,
    comment_id text,
    shown text,
    problem text,
    failures integer DEFAULT 0 NOT NULL,
    next_attempt_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.preview_fetch (
    id text NOT NULL,
    org_id text NOT NULL,
    follow_id text NOT NULL,
    branch text NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    next_fetch_at timestamp with time zone DEFAULT now() NOT NULL,
    lease_owner text,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL
);

CREATE TABLE public.project_database (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    status text DEFAULT 'provisioning'::text NOT NULL,
    role_name text NOT NULL,
    database_name text NOT NULL,
    sealed_password bytea NOT NULL,
    port integer,
    host text,
    engine_version text,
    failure jsonb,
    lease_owner text,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ready_at timestamp with time zone,
    archived boolean DEFAULT true NOT NULL,
    archive_problem text,
    CONSTRAINT project_database_status_check CHECK ((status = ANY (ARRAY['provisioning'::text, 'ready'::text, 'failed'::text])))
);

CREATE TABLE public.project_follow (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    url text NOT NULL,
    branch text NOT NULL,
    provider text NOT NULL,
    public_key text,
    sealed_key bytea,
    host_keys text,
    sealed_token bytea,
    sealed_secret bytea NOT NULL,
    commit text,
    fetched_at timestamp with time zone,
    problem text,
    failures integer DEFAULT 0 NOT NULL,
    status_problem text,
    next_fetch_at timestamp with time zone DEFAULT now() NOT NULL,
    lease_owner text,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    host_key_pin text,
    CONSTRAINT project_follow_provider_check CHECK ((provider = ANY (ARRAY['github'::text, 'gitlab'::text, 'gitea'::text, 'other'::text])))
);

CREATE TABLE public.project_health (
    project_id text NOT NULL,
    org_id text NOT NULL,
    state text DEFAULT 'empty'::text NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL,
    traffic jsonb
);

CREATE TABLE public.project_metric (
    project_id text NOT NULL,
    org_id text NOT NULL,
    bucket_seconds integer NOT NULL,
    at timestamp with time zone NOT NULL,
    requests bigint DEFAULT 0 NOT NULL,
    errors bigint DEFAULT 0 NOT NULL,
    classes bigint[] DEFAULT '{0,0,0,0,0}'::bigint[] NOT NULL,
    bytes_in bigint DEFAULT 0 NOT NULL,
    bytes_out bigint DEFAULT 0 NOT NULL,
    latencies bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    latency_sum_ms double precision DEFAULT 0 NOT NULL,
    looks integer DEFAULT 0 NOT NULL,
    failed_looks integer DEFAULT 0 NOT NULL,
    dns_looks integer DEFAULT 0 NOT NULL,
    dns_ms double precision DEFAULT 0 NOT NULL,
    connect_ms double precision DEFAULT 0 NOT NULL,
    first_byte_ms double precision DEFAULT 0 NOT NULL,
    total_ms double precision DEFAULT 0 NOT NULL,
    slowest_ms double precision DEFAULT 0 NOT NULL,
    tls_looks integer DEFAULT 0 NOT NULL,
    tls_ms double precision DEFAULT 0 NOT NULL
)
WITH (fillfactor='70');

ALTER TABLE public.project ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.project_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.project_purge (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    status text DEFAULT 'running'::text NOT NULL,
    requested_by text NOT NULL,
    backup_id text,
    database_id text,
    problem text,
    lease_owner text,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT project_purge_status_check CHECK ((status = ANY (ARRAY['running'::text, 'completed'::text, 'failed'::text])))
);

CREATE TABLE public.project_variable (
    org_id text NOT NULL,
    project_id text NOT NULL,
    key text NOT NULL,
    sealed_value bytea NOT NULL,
    size_bytes integer NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.provider (
    id text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    issuer text NOT NULL,
    client_id text NOT NULL,
    sealed_secret bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT provider_kind_check CHECK ((kind = ANY (ARRAY['oidc'::text, 'github'::text])))
);

CREATE TABLE public.registry (
    org_id text NOT NULL,
    host text NOT NULL,
    username text NOT NULL,
    sealed_password bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.rehearsal (
    deployment_id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    database_id text,
    status text DEFAULT 'running'::text NOT NULL,
    reason text,
    method text,
    copy_bytes bigint,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    report jsonb,
    cleared boolean DEFAULT false NOT NULL,
    CONSTRAINT rehearsal_method_check CHECK ((method = ANY (ARRAY['clone'::text, 'copy'::text]))),
    CONSTRAINT rehearsal_status_check CHECK ((status = ANY (ARRAY['running'::text, 'passed'::text, 'failed'::text, 'skipped'::text])))
);

CREATE TABLE public.replica (
    org_id text NOT NULL,
    deployment_id text NOT NULL,
    ordinal integer NOT NULL,
    ready_attempt integer DEFAULT 0 NOT NULL,
    restarts integer DEFAULT 0 NOT NULL,
    exit_code integer,
    out_of_memory boolean DEFAULT false NOT NULL,
    exited_at timestamp with time zone,
    next_start_at timestamp with time zone,
    attempt integer DEFAULT 0 NOT NULL,
    state text DEFAULT 'stopped'::text NOT NULL,
    machine text,
    host text,
    port integer,
    since timestamp with time zone DEFAULT now() NOT NULL,
    process text DEFAULT 'web'::text NOT NULL,
    project_id text DEFAULT ''::text NOT NULL,
    crashes integer DEFAULT 0 NOT NULL,
    CONSTRAINT replica_state_check CHECK ((state = ANY (ARRAY['starting'::text, 'running'::text, 'draining'::text, 'exited'::text, 'stopped'::text])))
);

CREATE TABLE public.replica_metric (
    project_id text NOT NULL,
    org_id text NOT NULL,
    bucket_seconds integer NOT NULL,
    at timestamp with time zone NOT NULL,
    ordinal integer NOT NULL,
    samples integer DEFAULT 0 NOT NULL,
    cpu_seconds double precision DEFAULT 0 NOT NULL,
    seconds double precision DEFAULT 0 NOT NULL,
    memory_bytes_sum double precision DEFAULT 0 NOT NULL,
    memory_bytes_most bigint DEFAULT 0 NOT NULL,
    processes_most integer DEFAULT 0 NOT NULL,
    process text DEFAULT 'web'::text NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE public.replica_usage (
    deployment_id text NOT NULL,
    ordinal integer NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    attempt integer NOT NULL,
    cpu_seconds double precision NOT NULL,
    memory_bytes bigint NOT NULL,
    processes integer NOT NULL,
    measured_at timestamp with time zone NOT NULL,
    process text DEFAULT 'web'::text NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE public.restored_database (
    org_id text NOT NULL,
    project_id text NOT NULL,
    name text NOT NULL,
    backup_id text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    dropped_at timestamp with time zone,
    shows timestamp with time zone
);

CREATE TABLE public.route_change (
    project_id text NOT NULL,
    changed_by xid8 NOT NULL
);

CREATE SEQUENCE public.route_version
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE public.run (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    number integer NOT NULL,
    status text DEFAULT 'queued'::text NOT NULL,
    deployment_id text NOT NULL,
    deployment integer NOT NULL,
    command text NOT NULL,
    timeout_seconds integer NOT NULL,
    requested_by text NOT NULL,
    exit_code integer,
    cancel_requested boolean DEFAULT false NOT NULL,
    lease_owner text,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    terminal boolean DEFAULT false NOT NULL,
    token_id text,
    CONSTRAINT run_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text, 'succeeded'::text, 'failed'::text, 'timed_out'::text, 'cancelled'::text, 'interrupted'::text])))
);

CREATE TABLE public.schema_migration (
    name text NOT NULL,
    sha256 text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    kind text NOT NULL
);

CREATE TABLE public.session (
    id text NOT NULL,
    person_id text NOT NULL,
    token_id text NOT NULL,
    hash bytea NOT NULL,
    method text NOT NULL,
    user_agent text NOT NULL,
    address text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    fresh_at timestamp with time zone,
    CONSTRAINT session_method_check CHECK ((method = ANY (ARRAY['passkey'::text, 'invitation'::text, 'switch'::text, 'provider'::text, 'link'::text])))
);

CREATE TABLE public.sign_in_link (
    hash bytea NOT NULL,
    token_hash bytea NOT NULL,
    locked_token bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE public.ssh_key (
    id text NOT NULL,
    org_id text NOT NULL,
    name text NOT NULL,
    public_key text NOT NULL,
    fingerprint text NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.storage_piece (
    project_id text NOT NULL,
    org_id text NOT NULL,
    sha256 text NOT NULL,
    storage text NOT NULL,
    storage_key text NOT NULL,
    bytes bigint,
    first_backup text NOT NULL,
    last_backup text NOT NULL,
    unused boolean DEFAULT false NOT NULL
);

CREATE TABLE public.storage_snapshot (
    id text NOT NULL,
    org_id text NOT NULL,
    project_id text NOT NULL,
    deployment_id text NOT NULL,
    status text NOT NULL,
    bytes bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT storage_snapshot_status_check CHECK ((status = ANY (ARRAY['copying'::text, 'complete'::text, 'deleted'::text])))
);

CREATE TABLE public.used_challenge (
    hash bytea NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE public.webhook (
    id text NOT NULL,
    org_id text NOT NULL,
    name text NOT NULL,
    sealed_url bytea NOT NULL,
    host text NOT NULL,
    format text NOT NULL,
    events text[] NOT NULL,
    sealed_secret bytea NOT NULL,
    hourly_limit integer NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    failing_since timestamp with time zone,
    disabled_at timestamp with time zone,
    disabled_reason text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    confirmed boolean DEFAULT true NOT NULL,
    CONSTRAINT webhook_format_check CHECK ((format = ANY (ARRAY['json'::text, 'slack'::text, 'discord'::text, 'telegram'::text, 'ntfy'::text, 'teams'::text, 'email'::text])))
);

CREATE TABLE public.webhook_delivery (
    id text DEFAULT (('whd_'::text || lpad(to_hex(((EXTRACT(epoch FROM clock_timestamp()) * (1000000)::numeric))::bigint), 14, '0'::text)) || substr(replace((gen_random_uuid())::text, '-'::text, ''::text), 1, 16)) NOT NULL,
    org_id text NOT NULL,
    webhook_id text NOT NULL,
    event text NOT NULL,
    data jsonb NOT NULL,
    status text DEFAULT 'queued'::text NOT NULL,
    attempts jsonb DEFAULT '[]'::jsonb NOT NULL,
    next_attempt_at timestamp with time zone DEFAULT now() NOT NULL,
    lease_owner text,
    lease_until timestamp with time zone,
    fence integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT webhook_delivery_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'delivered'::text, 'failed'::text, 'dropped'::text])))
);

ALTER TABLE ONLY public.acme_account
    ADD CONSTRAINT acme_account_pkey PRIMARY KEY (directory);

ALTER TABLE ONLY public.acme_challenge
    ADD CONSTRAINT acme_challenge_pkey PRIMARY KEY (token);

ALTER TABLE ONLY public.activity
    ADD CONSTRAINT activity_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.alert
    ADD CONSTRAINT alert_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.api_token
    ADD CONSTRAINT api_token_hash_key UNIQUE (hash);

ALTER TABLE ONLY public.api_token
    ADD CONSTRAINT api_token_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.approval
    ADD CONSTRAINT approval_link_hash_key UNIQUE (link_hash);

ALTER TABLE ONLY public.approval
    ADD CONSTRAINT approval_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.archive_chain
    ADD CONSTRAINT archive_chain_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.archive_copy
    ADD CONSTRAINT archive_copy_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.archive_drill
    ADD CONSTRAINT archive_drill_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.archive_loss
    ADD CONSTRAINT archive_loss_pkey PRIMARY KEY (chain_id, "position");

ALTER TABLE ONLY public.archive_mark
    ADD CONSTRAINT archive_mark_pkey PRIMARY KEY (chain_id, "position");

ALTER TABLE ONLY public.backup_operation
    ADD CONSTRAINT backup_operation_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.backup
    ADD CONSTRAINT backup_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.build
    ADD CONSTRAINT build_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.build
    ADD CONSTRAINT build_project_id_number_key UNIQUE (project_id, number);

ALTER TABLE ONLY public.certificate
    ADD CONSTRAINT certificate_hostname_key UNIQUE (hostname);

ALTER TABLE ONLY public.certificate
    ADD CONSTRAINT certificate_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.commit_status
    ADD CONSTRAINT commit_status_pkey PRIMARY KEY (build_id);

ALTER TABLE ONLY public.control_plane
    ADD CONSTRAINT control_plane_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.cron_job
    ADD CONSTRAINT cron_job_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.cron_job
    ADD CONSTRAINT cron_job_project_id_name_key UNIQUE (project_id, name);

ALTER TABLE ONLY public.cron_run
    ADD CONSTRAINT cron_run_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.database_branch
    ADD CONSTRAINT database_branch_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.database_tunnel
    ADD CONSTRAINT database_tunnel_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.deployment
    ADD CONSTRAINT deployment_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.deployment
    ADD CONSTRAINT deployment_project_id_number_key UNIQUE (project_id, number);

ALTER TABLE ONLY public.disk_use
    ADD CONSTRAINT disk_use_pkey PRIMARY KEY (project_id);

ALTER TABLE ONLY public.domain_claim
    ADD CONSTRAINT domain_claim_pkey PRIMARY KEY (org_id, hostname);

ALTER TABLE ONLY public.domain
    ADD CONSTRAINT domain_hostname_key UNIQUE (hostname);

ALTER TABLE ONLY public.domain
    ADD CONSTRAINT domain_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.earlier_name
    ADD CONSTRAINT earlier_name_hostname_key UNIQUE (hostname);

ALTER TABLE ONLY public.earlier_name
    ADD CONSTRAINT earlier_name_pkey PRIMARY KEY (org_id, slug);

ALTER TABLE ONLY public.edge_counter
    ADD CONSTRAINT edge_counter_pkey PRIMARY KEY (counter, project_id);

ALTER TABLE ONLY public.edge
    ADD CONSTRAINT edge_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.follow_delivery
    ADD CONSTRAINT follow_delivery_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.idempotency_key
    ADD CONSTRAINT idempotency_key_pkey PRIMARY KEY (token_id, key);

ALTER TABLE ONLY public.identity
    ADD CONSTRAINT identity_issuer_subject_key UNIQUE (issuer, subject);

ALTER TABLE ONLY public.identity
    ADD CONSTRAINT identity_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.image_pruning
    ADD CONSTRAINT image_pruning_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.image_pruning
    ADD CONSTRAINT image_pruning_project_id_key UNIQUE (project_id);

ALTER TABLE ONLY public.invite
    ADD CONSTRAINT invite_hash_key UNIQUE (hash);

ALTER TABLE ONLY public.invite
    ADD CONSTRAINT invite_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.machine_metric
    ADD CONSTRAINT machine_metric_pkey PRIMARY KEY (machine, bucket_seconds, at);

ALTER TABLE ONLY public.machine
    ADD CONSTRAINT machine_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.monitor_check
    ADD CONSTRAINT monitor_check_pkey PRIMARY KEY (name, machine, subject);

ALTER TABLE ONLY public.notification
    ADD CONSTRAINT notification_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.oauth_client
    ADD CONSTRAINT oauth_client_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.oauth_grant
    ADD CONSTRAINT oauth_grant_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY public.oauth_grant
    ADD CONSTRAINT oauth_grant_user_code_hash_key UNIQUE (user_code_hash);

ALTER TABLE ONLY public.organization
    ADD CONSTRAINT organization_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.organization
    ADD CONSTRAINT organization_slug_key UNIQUE (slug);

ALTER TABLE ONLY public.page_look
    ADD CONSTRAINT page_look_pkey PRIMARY KEY (project_id);

ALTER TABLE ONLY public.passkey
    ADD CONSTRAINT passkey_pkey PRIMARY KEY (credential_id);

ALTER TABLE ONLY public.person
    ADD CONSTRAINT person_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.platform_backup
    ADD CONSTRAINT platform_backup_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.platform_fact
    ADD CONSTRAINT platform_fact_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.preview_comment
    ADD CONSTRAINT preview_comment_pkey PRIMARY KEY (project_id);

ALTER TABLE ONLY public.preview_fetch
    ADD CONSTRAINT preview_fetch_follow_id_branch_key UNIQUE (follow_id, branch);

ALTER TABLE ONLY public.preview_fetch
    ADD CONSTRAINT preview_fetch_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.process_setting
    ADD CONSTRAINT process_setting_pkey PRIMARY KEY (project_id, process);

ALTER TABLE ONLY public.project_database
    ADD CONSTRAINT project_database_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.project_database
    ADD CONSTRAINT project_database_project_id_key UNIQUE (project_id);

ALTER TABLE ONLY public.project_follow
    ADD CONSTRAINT project_follow_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.project_follow
    ADD CONSTRAINT project_follow_project_id_key UNIQUE (project_id);

ALTER TABLE ONLY public.project_health
    ADD CONSTRAINT project_health_pkey PRIMARY KEY (project_id);

ALTER TABLE ONLY public.project_metric
    ADD CONSTRAINT project_metric_pkey PRIMARY KEY (project_id, bucket_seconds, at);

ALTER TABLE ONLY public.project
    ADD CONSTRAINT project_number_key UNIQUE (number);

ALTER TABLE ONLY public.project
    ADD CONSTRAINT project_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.project_purge
    ADD CONSTRAINT project_purge_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.project_variable
    ADD CONSTRAINT project_variable_pkey PRIMARY KEY (project_id, key);

ALTER TABLE ONLY public.provider
    ADD CONSTRAINT provider_issuer_key UNIQUE (issuer);

ALTER TABLE ONLY public.provider
    ADD CONSTRAINT provider_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.registry
    ADD CONSTRAINT registry_pkey PRIMARY KEY (org_id, host);

ALTER TABLE ONLY public.rehearsal
    ADD CONSTRAINT rehearsal_pkey PRIMARY KEY (deployment_id);

ALTER TABLE ONLY public.replica_metric
    ADD CONSTRAINT replica_metric_pkey PRIMARY KEY (project_id, bucket_seconds, at, process, ordinal);

ALTER TABLE ONLY public.replica
    ADD CONSTRAINT replica_pkey PRIMARY KEY (deployment_id, process, ordinal);

ALTER TABLE ONLY public.replica_usage
    ADD CONSTRAINT replica_usage_pkey PRIMARY KEY (deployment_id, process, ordinal);

ALTER TABLE ONLY public.restored_database
    ADD CONSTRAINT restored_database_pkey PRIMARY KEY (project_id, name);

ALTER TABLE ONLY public.route_change
    ADD CONSTRAINT route_change_pkey PRIMARY KEY (project_id);

ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_project_id_number_key UNIQUE (project_id, number);

ALTER TABLE ONLY public.schema_migration
    ADD CONSTRAINT schema_migration_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_hash_key UNIQUE (hash);

ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.sign_in_link
    ADD CONSTRAINT sign_in_link_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY public.ssh_key
    ADD CONSTRAINT ssh_key_org_id_fingerprint_key UNIQUE (org_id, fingerprint);

ALTER TABLE ONLY public.ssh_key
    ADD CONSTRAINT ssh_key_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.storage_piece
    ADD CONSTRAINT storage_piece_pkey PRIMARY KEY (project_id, sha256);

ALTER TABLE ONLY public.storage_snapshot
    ADD CONSTRAINT storage_snapshot_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.used_challenge
    ADD CONSTRAINT used_challenge_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY public.webhook_delivery
    ADD CONSTRAINT webhook_delivery_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhook
    ADD CONSTRAINT webhook_pkey PRIMARY KEY (id);

CREATE INDEX activity_by_time ON public.activity USING btree (created_at);

CREATE INDEX activity_crash_shown ON public.activity USING btree (project_id) WHERE ((NOT grouped) AND (action = ANY (ARRAY['replica.crashed'::text, 'replica.out_of_memory'::text])));

CREATE INDEX activity_crashed ON public.activity USING btree (created_at) WHERE (action = ANY (ARRAY['replica.crashed'::text, 'replica.out_of_memory'::text]));

CREATE INDEX activity_of_org ON public.activity USING btree (org_id, id DESC);

CREATE INDEX activity_of_org_by_time ON public.activity USING btree (org_id, created_at DESC, id DESC);

CREATE INDEX activity_of_project ON public.activity USING btree (project_id, id DESC);

CREATE INDEX activity_of_project_by_time ON public.activity USING btree (project_id, created_at DESC, id DESC);

CREATE INDEX activity_shown_of_org ON public.activity USING btree (org_id, created_at DESC, id DESC) WHERE (NOT grouped);

CREATE INDEX activity_shown_of_project ON public.activity USING btree (project_id, created_at DESC, id DESC) WHERE (NOT grouped);

CREATE INDEX alert_listed ON public.alert USING btree (id DESC);

CREATE INDEX alert_old ON public.alert USING btree (resolved_at) WHERE (resolved_at IS NOT NULL);

CREATE UNIQUE INDEX alert_open ON public.alert USING btree (name, machine, subject) WHERE (resolved_at IS NULL);

CREATE INDEX alert_resolved ON public.alert USING btree (name, machine, subject, resolved_at DESC) WHERE (resolved_at IS NOT NULL);

CREATE INDEX api_token_by_creator ON public.api_token USING btree (created_by) WHERE (created_by IS NOT NULL);

CREATE UNIQUE INDEX api_token_of_member ON public.api_token USING btree (org_id, person_id) WHERE ((kind = 'member'::text) AND (revoked_at IS NULL));

CREATE INDEX api_token_of_org ON public.api_token USING btree (org_id, created_at DESC);

CREATE INDEX api_token_of_person ON public.api_token USING btree (person_id) WHERE (person_id IS NOT NULL);

CREATE INDEX approval_denied ON public.approval USING btree (token_id, route, resource, decided_at) WHERE (status = 'denied'::text);

CREATE INDEX approval_ended ON public.approval USING btree (created_at) WHERE (status <> ALL (ARRAY['pending'::text, 'approved'::text]));

CREATE INDEX approval_ending ON public.approval USING btree (expires_at) WHERE (status = ANY (ARRAY['pending'::text, 'approved'::text]));

CREATE INDEX approval_of_org ON public.approval USING btree (org_id, id DESC);

CREATE UNIQUE INDEX approval_open ON public.approval USING btree (token_id, fingerprint) WHERE (status = ANY (ARRAY['pending'::text, 'approved'::text]));

CREATE INDEX archive_chain_of_project ON public.archive_chain USING btree (org_id, project_id);

CREATE UNIQUE INDEX archive_chain_one_open ON public.archive_chain USING btree (database_id) WHERE (ended_at IS NULL);

CREATE INDEX archive_copy_of_chain ON public.archive_copy USING btree (chain_id, restorable_from);

CREATE INDEX archive_drill_of_project ON public.archive_drill USING btree (org_id, project_id, id DESC);

CREATE INDEX backup_of_project ON public.backup USING btree (org_id, project_id, id DESC);

CREATE INDEX backup_operation_leased ON public.backup_operation USING btree (lease_until) WHERE (lease_until IS NOT NULL);

CREATE INDEX backup_operation_of_backup ON public.backup_operation USING btree (backup_id);

CREATE UNIQUE INDEX backup_operation_one_running ON public.backup_operation USING btree (project_id) WHERE (status = 'running'::text);

CREATE INDEX backup_operation_open ON public.backup_operation USING btree (created_at) WHERE (status = 'running'::text);

CREATE INDEX branch_at_work ON public.database_branch USING btree (created_at) WHERE (status = ANY (ARRAY['copying'::text, 'deleting'::text]));

CREATE UNIQUE INDEX branch_by_name ON public.database_branch USING btree (project_id, name) WHERE (status <> 'deleting'::text);

CREATE INDEX branch_of_user ON public.database_branch USING btree (used_by) WHERE (used_by IS NOT NULL);

CREATE INDEX build_by_time ON public.build USING btree (created_at);

CREATE INDEX build_failed ON public.build USING btree (project_id, finished_at DESC, id DESC) WHERE ((status = 'failed'::text) AND (finished_at IS NOT NULL));

CREATE INDEX build_failed_of_org ON public.build USING btree (org_id, finished_at DESC, id DESC) WHERE ((status = 'failed'::text) AND (finished_at IS NOT NULL));

CREATE INDEX build_leased ON public.build USING btree (lease_until) WHERE (lease_until IS NOT NULL);

CREATE INDEX build_of_approval ON public.build USING btree (approval_id) WHERE (approval_id IS NOT NULL);

CREATE INDEX build_of_project ON public.build USING btree (org_id, project_id, number DESC);

CREATE UNIQUE INDEX build_one_running ON public.build USING btree (project_id) WHERE (status = 'running'::text);

CREATE INDEX build_open ON public.build USING btree (status, created_at) WHERE (status = ANY (ARRAY['queued'::text, 'running'::text]));

CREATE INDEX certificate_due ON public.certificate USING btree (next_attempt_at) WHERE wanted;

CREATE INDEX certificate_ending ON public.certificate USING btree (not_after) WHERE (wanted AND (chain_pem IS NOT NULL));

CREATE INDEX certificate_of_zone ON public.certificate USING btree (zone, first_issued_at);

CREATE INDEX certificate_ordered ON public.certificate USING btree (ordered_at);

CREATE INDEX change_by_org ON public.change USING btree (org_id, xid);

CREATE INDEX change_by_time ON public.change USING btree (at);

CREATE INDEX commit_status_due ON public.commit_status USING btree (next_attempt_at);

CREATE INDEX commit_status_of_follow ON public.commit_status USING btree (follow_id);

CREATE INDEX cron_job_due ON public.cron_job USING btree (next_run_at);

CREATE INDEX cron_job_of_project ON public.cron_job USING btree (org_id, project_id, id DESC);

CREATE INDEX cron_run_failed ON public.cron_run USING btree (project_id, finished_at DESC, id DESC) WHERE ((status = ANY (ARRAY['failed'::text, 'timeout'::text, 'unknown'::text])) AND (finished_at IS NOT NULL));

CREATE INDEX cron_run_failed_of_org ON public.cron_run USING btree (org_id, finished_at DESC, id DESC) WHERE ((status = ANY (ARRAY['failed'::text, 'timeout'::text, 'unknown'::text])) AND (finished_at IS NOT NULL));

CREATE INDEX cron_run_failure_shown ON public.cron_run USING btree (project_id, finished_at DESC, id DESC) WHERE ((status = ANY (ARRAY['failed'::text, 'timeout'::text, 'unknown'::text])) AND (finished_at IS NOT NULL) AND (NOT grouped));

CREATE INDEX cron_run_failure_shown_of_org ON public.cron_run USING btree (org_id, finished_at DESC, id DESC) WHERE ((status = ANY (ARRAY['failed'::text, 'timeout'::text, 'unknown'::text])) AND (finished_at IS NOT NULL) AND (NOT grouped));

CREATE INDEX cron_run_leased ON public.cron_run USING btree (lease_owner) WHERE (lease_owner IS NOT NULL);

CREATE INDEX cron_run_of_job ON public.cron_run USING btree (job_id, scheduled_at DESC, id DESC);

CREATE UNIQUE INDEX cron_run_once ON public.cron_run USING btree (job_id, scheduled_at) WHERE (trigger = 'schedule'::text);

CREATE INDEX cron_run_open ON public.cron_run USING btree (job_id) WHERE (status = 'running'::text);

CREATE INDEX database_tunnel_live ON public.database_tunnel USING btree (org_id) WHERE (status <> 'closed'::text);

CREATE INDEX database_tunnel_old ON public.database_tunnel USING btree (created_at);

CREATE INDEX deployment_by_time ON public.deployment USING btree (created_at);

CREATE INDEX deployment_decided ON public.deployment USING btree (project_id, finished_at DESC, id DESC) WHERE (finished_at IS NOT NULL);

CREATE INDEX deployment_decided_of_org ON public.deployment USING btree (org_id, finished_at DESC, id DESC) WHERE (finished_at IS NOT NULL);

CREATE INDEX deployment_leased ON public.deployment USING btree (lease_until) WHERE (lease_until IS NOT NULL);

CREATE INDEX deployment_of_build ON public.deployment USING btree (build_id);

CREATE INDEX deployment_of_image ON public.deployment USING btree (project_id, image_ref, number DESC);

CREATE INDEX deployment_of_project ON public.deployment USING btree (org_id, project_id, number DESC);

CREATE UNIQUE INDEX deployment_one_active ON public.deployment USING btree (project_id) WHERE (status = 'active'::text);

CREATE UNIQUE INDEX deployment_one_coming ON public.deployment USING btree (project_id) WHERE (status = ANY (ARRAY['pending'::text, 'starting'::text]));

CREATE INDEX deployment_pushed ON public.deployment USING btree (project_id, number DESC) WHERE ((trigger = ANY (ARRAY['push'::text, 'upload'::text, 'follow'::text])) AND (activated_at IS NOT NULL));

CREATE INDEX deployment_restored_from ON public.deployment USING btree (restored_from) WHERE (restored_from IS NOT NULL);

CREATE INDEX deployment_rolled_back_from ON public.deployment USING btree (rolled_back_from) WHERE (rolled_back_from IS NOT NULL);

CREATE INDEX disk_use_due ON public.disk_use USING btree (next_at);

CREATE INDEX domain_claim_hostname ON public.domain_claim USING btree (hostname);

CREATE INDEX domain_claim_verified ON public.domain_claim USING btree (zone) WHERE (verified_at IS NOT NULL);

CREATE INDEX domain_due ON public.domain USING btree (next_check_at);

CREATE INDEX domain_of_project ON public.domain USING btree (org_id, project_id, id DESC);

CREATE INDEX domain_redirected ON public.domain USING btree (redirect_id) WHERE (redirect_id IS NOT NULL);

CREATE INDEX domain_served ON public.domain USING btree (project_id) WHERE (verified_at IS NOT NULL);

CREATE INDEX earlier_name_of_project ON public.earlier_name USING btree (project_id);

CREATE INDEX edge_counter_seen ON public.edge_counter USING btree (seen_at);

CREATE INDEX follow_delivery_of_build ON public.follow_delivery USING btree (build_id) WHERE (build_id IS NOT NULL);

CREATE INDEX follow_delivery_of_follow ON public.follow_delivery USING btree (follow_id, id DESC);

CREATE INDEX follow_delivery_old ON public.follow_delivery USING btree (received_at);

CREATE INDEX follow_delivery_waiting ON public.follow_delivery USING btree (follow_id) WHERE (status = 'waiting'::text);

CREATE INDEX idempotency_key_ending ON public.idempotency_key USING btree (expires_at);

CREATE INDEX identity_of_person ON public.identity USING btree (person_id);

CREATE INDEX invite_of_org ON public.invite USING btree (org_id, id DESC);

CREATE INDEX notification_due ON public.notification USING btree (next_attempt_at) WHERE (status = 'queued'::text);

CREATE INDEX notification_ended ON public.notification USING btree (finished_at) WHERE (status <> 'queued'::text);

CREATE INDEX notification_given_up ON public.notification USING btree (finished_at) WHERE (status = 'given_up'::text);

CREATE INDEX notification_leased ON public.notification USING btree (lease_until) WHERE (lease_until IS NOT NULL);

CREATE INDEX oauth_client_by_address ON public.oauth_client USING btree (address, created_at);

CREATE INDEX oauth_client_by_use ON public.oauth_client USING btree (last_used_at NULLS FIRST, created_at);

CREATE INDEX oauth_grant_by_end ON public.oauth_grant USING btree (expires_at);

CREATE INDEX oauth_grant_waiting ON public.oauth_grant USING btree (expires_at) WHERE (user_code_hash IS NOT NULL);

CREATE UNIQUE INDEX organization_is_first ON public.organization USING btree (is_first) WHERE is_first;

CREATE INDEX page_look_due ON public.page_look USING btree (next_at);

CREATE UNIQUE INDEX passkey_by_id ON public.passkey USING btree (id);

CREATE INDEX passkey_of_person ON public.passkey USING btree (person_id);

CREATE UNIQUE INDEX platform_backup_one_running ON public.platform_backup USING btree (status) WHERE (status = 'running'::text);

CREATE INDEX preview_comment_due ON public.preview_comment USING btree (next_attempt_at);

CREATE INDEX preview_comment_of_follow ON public.preview_comment USING btree (follow_id);

CREATE INDEX preview_fetch_due ON public.preview_fetch USING btree (next_fetch_at);

CREATE INDEX project_follow_due ON public.project_follow USING btree (next_fetch_at);

CREATE INDEX project_follow_leased ON public.project_follow USING btree (lease_until) WHERE (lease_until IS NOT NULL);

CREATE INDEX project_health_of_org ON public.project_health USING btree (org_id);

CREATE INDEX project_metric_of_org ON public.project_metric USING btree (org_id, bucket_seconds, at);

CREATE INDEX project_metric_old ON public.project_metric USING btree (bucket_seconds, at);

CREATE UNIQUE INDEX project_of_hostname ON public.project USING btree (hostname) WHERE (purged_at IS NULL);

CREATE UNIQUE INDEX project_of_slug ON public.project USING btree (org_id, slug) WHERE (purged_at IS NULL);

CREATE UNIQUE INDEX project_preview ON public.project USING btree (preview_of, git_branch) WHERE (purged_at IS NULL);

CREATE INDEX project_preview_ends ON public.project USING btree (preview_expires_at) WHERE (purged_at IS NULL);

CREATE INDEX project_purge_leased ON public.project_purge USING btree (lease_until) WHERE (lease_until IS NOT NULL);

CREATE UNIQUE INDEX project_purge_running ON public.project_purge USING btree (project_id) WHERE (status = 'running'::text);

CREATE INDEX project_variables_changed ON public.project USING btree (variables_changed_at) WHERE (variables_changed_at IS NOT NULL);

CREATE INDEX rehearsal_of_project ON public.rehearsal USING btree (org_id, project_id, deployment_id);

CREATE INDEX rehearsal_uncleared ON public.rehearsal USING btree (started_at) WHERE (NOT cleared);

CREATE INDEX replica_draining ON public.replica USING btree (deployment_id) WHERE (state = 'draining'::text);

CREATE INDEX replica_metric_old ON public.replica_metric USING btree (bucket_seconds, at);

CREATE INDEX replica_of_project ON public.replica USING btree (project_id) WHERE (state <> 'stopped'::text);

CREATE INDEX replica_present ON public.replica USING btree (machine) WHERE (state <> 'stopped'::text);

CREATE INDEX replica_usage_of_project ON public.replica_usage USING btree (project_id);

CREATE INDEX route_change_order ON public.route_change USING btree (changed_by);

CREATE INDEX run_leased ON public.run USING btree (lease_until) WHERE (lease_until IS NOT NULL);

CREATE INDEX run_old ON public.run USING btree (created_at);

CREATE INDEX run_open ON public.run USING btree (created_at) WHERE (status = ANY (ARRAY['queued'::text, 'running'::text]));

CREATE INDEX session_of_member ON public.session USING btree (token_id) WHERE (ended_at IS NULL);

CREATE INDEX session_of_person ON public.session USING btree (person_id, id DESC);

CREATE INDEX sign_in_link_of_token ON public.sign_in_link USING btree (token_hash, expires_at DESC);

CREATE INDEX ssh_key_by_fingerprint ON public.ssh_key USING btree (fingerprint);

CREATE INDEX storage_piece_unused ON public.storage_piece USING btree (project_id) WHERE unused;

CREATE INDEX storage_snapshot_of_project ON public.storage_snapshot USING btree (org_id, project_id, id DESC);

CREATE INDEX webhook_delivery_due ON public.webhook_delivery USING btree (next_attempt_at) WHERE (status = 'queued'::text);

CREATE INDEX webhook_delivery_leased ON public.webhook_delivery USING btree (lease_until) WHERE (lease_until IS NOT NULL);

CREATE INDEX webhook_delivery_of_webhook ON public.webhook_delivery USING btree (webhook_id, id DESC);

CREATE INDEX webhook_delivery_old ON public.webhook_delivery USING btree (created_at);

CREATE INDEX webhook_delivery_recent ON public.webhook_delivery USING btree (webhook_id, created_at);

CREATE INDEX webhook_given_up ON public.webhook USING btree (disabled_at) WHERE (disabled_reason IS NOT NULL);

CREATE INDEX webhook_of_org ON public.webhook USING btree (org_id, id DESC);

CREATE TRIGGER change_noted AFTER INSERT ON public.activity FOR EACH ROW EXECUTE FUNCTION public.note_change('activity');

CREATE TRIGGER change_noted AFTER INSERT OR UPDATE OF status ON public.approval FOR EACH ROW EXECUTE FUNCTION public.note_change('approval');

CREATE TRIGGER change_noted AFTER INSERT OR UPDATE OF status, verification ON public.backup FOR EACH ROW EXECUTE FUNCTION public.note_change('backup');

CREATE TRIGGER change_noted AFTER INSERT OR UPDATE OF status, phase ON public.backup_operation FOR EACH ROW EXECUTE FUNCTION public.note_change('backup');

CREATE TRIGGER change_noted AFTER INSERT OR UPDATE OF status ON public.build FOR EACH ROW EXECUTE FUNCTION public.note_change('build');

CREATE TRIGGER change_noted AFTER UPDATE OF status, detail, not_after ON public.certificate FOR EACH ROW EXECUTE FUNCTION public.note_certificate_change();

CREATE TRIGGER change_noted AFTER INSERT OR UPDATE OF status ON public.cron_run FOR EACH ROW EXECUTE FUNCTION public.note_change('cron');

CREATE TRIGGER change_noted AFTER INSERT OR UPDATE OF status, switching ON public.deployment FOR EACH ROW EXECUTE FUNCTION public.note_change('deployment');

CREATE TRIGGER change_noted AFTER UPDATE OF dns_status, verified_at, lost_at, redirect_id ON public.domain FOR EACH ROW EXECUTE FUNCTION public.note_change('domain');

CREATE TRIGGER change_noted AFTER UPDATE OF status ON public.project_database FOR EACH ROW EXECUTE FUNCTION public.note_change('database');

CREATE TRIGGER change_noted AFTER INSERT OR UPDATE ON public.project_health FOR EACH ROW EXECUTE FUNCTION public.note_change('deployment');

CREATE TRIGGER change_noted AFTER UPDATE OF state, ready_attempt ON public.replica FOR EACH ROW EXECUTE FUNCTION public.note_change('replica');

CREATE TRIGGER crash_grouped BEFORE INSERT ON public.activity FOR EACH ROW WHEN ((new.action = ANY (ARRAY['replica.crashed'::text, 'replica.out_of_memory'::text]))) EXECUTE FUNCTION public.group_crash();

CREATE TRIGGER failure_grouped BEFORE UPDATE OF status ON public.cron_run FOR EACH ROW WHEN (((new.status = ANY (ARRAY['failed'::text, 'timeout'::text, 'unknown'::text])) AND (old.status IS DISTINCT FROM new.status))) EXECUTE FUNCTION public.group_cron_failure();

CREATE TRIGGER knows_its_project BEFORE INSERT ON public.replica FOR EACH ROW EXECUTE FUNCTION public.replica_knows_its_project();

CREATE TRIGGER marked AFTER UPDATE ON public.certificate REFERENCING OLD TABLE AS earlier NEW TABLE AS later FOR EACH STATEMENT EXECUTE FUNCTION public.certificates_changed();

CREATE TRIGGER marked_by_deletion AFTER DELETE ON public.certificate REFERENCING OLD TABLE AS earlier FOR EACH STATEMENT EXECUTE FUNCTION public.certificates_changed();

CREATE TRIGGER route_changed AFTER INSERT OR UPDATE OF status, switching, taking_over ON public.deployment FOR EACH ROW EXECUTE FUNCTION public.route_of_deployment_changed();

CREATE TRIGGER route_changed AFTER INSERT OR DELETE OR UPDATE OF hostname, verified_at, redirect_id ON public.domain FOR EACH ROW EXECUTE FUNCTION public.route_of_domain_changed();

CREATE TRIGGER route_changed AFTER INSERT OR DELETE ON public.earlier_name FOR EACH ROW EXECUTE FUNCTION public.route_of_domain_changed();

CREATE TRIGGER route_changed AFTER UPDATE OF suspended_at ON public.organization FOR EACH ROW EXECUTE FUNCTION public.route_of_organization_changed();

CREATE TRIGGER route_changed AFTER INSERT OR DELETE OR UPDATE ON public.process_setting FOR EACH ROW EXECUTE FUNCTION public.route_of_domain_changed();

CREATE TRIGGER route_changed AFTER INSERT OR DELETE OR UPDATE OF hostname, replicas, deleted_at, purged_at, maintenance_since, maintenance_message, sleep ON public.project FOR EACH ROW EXECUTE FUNCTION public.route_of_project_changed();

CREATE TRIGGER route_changed AFTER INSERT OR DELETE OR UPDATE OF state, attempt, ready_attempt, host, port ON public.replica FOR EACH ROW EXECUTE FUNCTION public.route_of_replica_changed();

CREATE TRIGGER webhook_event AFTER INSERT ON public.alert FOR EACH ROW EXECUTE FUNCTION public.webhook_event_of_alert();

CREATE TRIGGER webhook_event AFTER INSERT ON public.approval FOR EACH ROW WHEN ((new.status = 'pending'::text)) EXECUTE FUNCTION public.webhook_event_of_approval();

CREATE TRIGGER webhook_event AFTER UPDATE OF status ON public.backup FOR EACH ROW WHEN (((new.status IS DISTINCT FROM old.status) AND (new.status = ANY (ARRAY['completed'::text, 'failed'::text])))) EXECUTE FUNCTION public.webhook_event_of_backup();

CREATE TRIGGER webhook_event AFTER UPDATE OF status ON public.build FOR EACH ROW WHEN (((new.status IS DISTINCT FROM old.status) AND (new.status = ANY (ARRAY['succeeded'::text, 'failed'::text])))) EXECUTE FUNCTION public.webhook_event_of_build();

CREATE TRIGGER webhook_event AFTER UPDATE OF status ON public.certificate FOR EACH ROW WHEN (((new.status IS DISTINCT FROM old.status) AND (new.status = ANY (ARRAY['active'::text, 'failed'::text])))) EXECUTE FUNCTION public.webhook_event_of_certificate();

CREATE TRIGGER webhook_event AFTER UPDATE OF status ON public.deployment FOR EACH ROW WHEN (((new.status IS DISTINCT FROM old.status) AND (new.status = ANY (ARRAY['active'::text, 'failed'::text])))) EXECUTE FUNCTION public.webhook_event_of_deployment();

CREATE TRIGGER webhook_event_of_end AFTER UPDATE OF resolved_at ON public.alert FOR EACH ROW WHEN (((old.resolved_at IS NULL) AND (new.resolved_at IS NOT NULL))) EXECUTE FUNCTION public.webhook_event_of_alert();

CREATE TRIGGER webhook_event_of_verification AFTER UPDATE OF verification ON public.backup FOR EACH ROW WHEN (((new.verification IS NOT NULL) AND (new.verification IS DISTINCT FROM old.verification))) EXECUTE FUNCTION public.webhook_event_of_verification();

ALTER TABLE ONLY public.activity
    ADD CONSTRAINT activity_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.activity
    ADD CONSTRAINT activity_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.api_token
    ADD CONSTRAINT api_token_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.api_token
    ADD CONSTRAINT api_token_person_id_fkey FOREIGN KEY (person_id) REFERENCES public.person(id);

ALTER TABLE ONLY public.approval
    ADD CONSTRAINT approval_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.approval
    ADD CONSTRAINT approval_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.approval
    ADD CONSTRAINT approval_token_id_fkey FOREIGN KEY (token_id) REFERENCES public.api_token(id);

ALTER TABLE ONLY public.archive_chain
    ADD CONSTRAINT archive_chain_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.archive_chain
    ADD CONSTRAINT archive_chain_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.archive_copy
    ADD CONSTRAINT archive_copy_chain_id_fkey FOREIGN KEY (chain_id) REFERENCES public.archive_chain(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.archive_copy
    ADD CONSTRAINT archive_copy_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.archive_copy
    ADD CONSTRAINT archive_copy_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.archive_drill
    ADD CONSTRAINT archive_drill_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.archive_drill
    ADD CONSTRAINT archive_drill_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.archive_loss
    ADD CONSTRAINT archive_loss_chain_id_fkey FOREIGN KEY (chain_id) REFERENCES public.archive_chain(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.archive_mark
    ADD CONSTRAINT archive_mark_chain_id_fkey FOREIGN KEY (chain_id) REFERENCES public.archive_chain(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.backup_operation
    ADD CONSTRAINT backup_operation_backup_id_fkey FOREIGN KEY (backup_id) REFERENCES public.backup(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.backup_operation
    ADD CONSTRAINT backup_operation_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.backup_operation
    ADD CONSTRAINT backup_operation_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.backup
    ADD CONSTRAINT backup_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.backup
    ADD CONSTRAINT backup_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.build
    ADD CONSTRAINT build_approval_id_fkey FOREIGN KEY (approval_id) REFERENCES public.approval(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.build
    ADD CONSTRAINT build_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.build
    ADD CONSTRAINT build_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.certificate
    ADD CONSTRAINT certificate_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.commit_status
    ADD CONSTRAINT commit_status_build_id_fkey FOREIGN KEY (build_id) REFERENCES public.build(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.commit_status
    ADD CONSTRAINT commit_status_follow_id_fkey FOREIGN KEY (follow_id) REFERENCES public.project_follow(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.cron_job
    ADD CONSTRAINT cron_job_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.cron_job
    ADD CONSTRAINT cron_job_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.cron_run
    ADD CONSTRAINT cron_run_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.cron_job(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.cron_run
    ADD CONSTRAINT cron_run_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.cron_run
    ADD CONSTRAINT cron_run_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.database_branch
    ADD CONSTRAINT database_branch_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.database_branch
    ADD CONSTRAINT database_branch_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.database_branch
    ADD CONSTRAINT database_branch_used_by_fkey FOREIGN KEY (used_by) REFERENCES public.project(id);

ALTER TABLE ONLY public.database_tunnel
    ADD CONSTRAINT database_tunnel_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.database_tunnel
    ADD CONSTRAINT database_tunnel_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.deployment
    ADD CONSTRAINT deployment_build_id_fkey FOREIGN KEY (build_id) REFERENCES public.build(id);

ALTER TABLE ONLY public.deployment
    ADD CONSTRAINT deployment_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.deployment
    ADD CONSTRAINT deployment_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.deployment
    ADD CONSTRAINT deployment_restored_from_fkey FOREIGN KEY (restored_from) REFERENCES public.deployment(id);

ALTER TABLE ONLY public.deployment
    ADD CONSTRAINT deployment_rolled_back_from_fkey FOREIGN KEY (rolled_back_from) REFERENCES public.deployment(id);

ALTER TABLE ONLY public.disk_use
    ADD CONSTRAINT disk_use_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.disk_use
    ADD CONSTRAINT disk_use_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.domain_claim
    ADD CONSTRAINT domain_claim_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.domain
    ADD CONSTRAINT domain_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.domain
    ADD CONSTRAINT domain_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.domain
    ADD CONSTRAINT domain_redirect_id_fkey FOREIGN KEY (redirect_id) REFERENCES public.domain(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.earlier_name
    ADD CONSTRAINT earlier_name_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.earlier_name
    ADD CONSTRAINT earlier_name_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.edge_counter
    ADD CONSTRAINT edge_counter_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.follow_delivery
    ADD CONSTRAINT follow_delivery_build_id_fkey FOREIGN KEY (build_id) REFERENCES public.build(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.follow_delivery
    ADD CONSTRAINT follow_delivery_follow_id_fkey FOREIGN KEY (follow_id) REFERENCES public.project_follow(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.follow_delivery
    ADD CONSTRAINT follow_delivery_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.idempotency_key
    ADD CONSTRAINT idempotency_key_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.idempotency_key
    ADD CONSTRAINT idempotency_key_token_id_fkey FOREIGN KEY (token_id) REFERENCES public.api_token(id);

ALTER TABLE ONLY public.identity
    ADD CONSTRAINT identity_person_id_fkey FOREIGN KEY (person_id) REFERENCES public.person(id);

ALTER TABLE ONLY public.image_pruning
    ADD CONSTRAINT image_pruning_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.image_pruning
    ADD CONSTRAINT image_pruning_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.invite
    ADD CONSTRAINT invite_created_by_fkey FOREIGN KEY (created_by) REFERENCES public.api_token(id);

ALTER TABLE ONLY public.invite
    ADD CONSTRAINT invite_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.invite
    ADD CONSTRAINT invite_used_by_fkey FOREIGN KEY (used_by) REFERENCES public.person(id);

ALTER TABLE ONLY public.notification
    ADD CONSTRAINT notification_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.oauth_grant
    ADD CONSTRAINT oauth_grant_token_id_fkey FOREIGN KEY (token_id) REFERENCES public.api_token(id);

ALTER TABLE ONLY public.page_look
    ADD CONSTRAINT page_look_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.page_look
    ADD CONSTRAINT page_look_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.passkey
    ADD CONSTRAINT passkey_person_id_fkey FOREIGN KEY (person_id) REFERENCES public.person(id);

ALTER TABLE ONLY public.preview_comment
    ADD CONSTRAINT preview_comment_follow_id_fkey FOREIGN KEY (follow_id) REFERENCES public.project_follow(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.preview_comment
    ADD CONSTRAINT preview_comment_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.preview_comment
    ADD CONSTRAINT preview_comment_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.preview_fetch
    ADD CONSTRAINT preview_fetch_follow_id_fkey FOREIGN KEY (follow_id) REFERENCES public.project_follow(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.preview_fetch
    ADD CONSTRAINT preview_fetch_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.process_setting
    ADD CONSTRAINT process_setting_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.process_setting
    ADD CONSTRAINT process_setting_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.project_database
    ADD CONSTRAINT project_database_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.project_database
    ADD CONSTRAINT project_database_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.project_follow
    ADD CONSTRAINT project_follow_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.project_follow
    ADD CONSTRAINT project_follow_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.project_health
    ADD CONSTRAINT project_health_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.project_health
    ADD CONSTRAINT project_health_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.project_metric
    ADD CONSTRAINT project_metric_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.project_metric
    ADD CONSTRAINT project_metric_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.project
    ADD CONSTRAINT project_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.project
    ADD CONSTRAINT project_preview_of_fkey FOREIGN KEY (preview_of) REFERENCES public.project(id);

ALTER TABLE ONLY public.project_purge
    ADD CONSTRAINT project_purge_backup_id_fkey FOREIGN KEY (backup_id) REFERENCES public.backup(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.project_purge
    ADD CONSTRAINT project_purge_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.project_purge
    ADD CONSTRAINT project_purge_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.project_variable
    ADD CONSTRAINT project_variable_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.project_variable
    ADD CONSTRAINT project_variable_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.registry
    ADD CONSTRAINT registry_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.rehearsal
    ADD CONSTRAINT rehearsal_deployment_id_fkey FOREIGN KEY (deployment_id) REFERENCES public.deployment(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.rehearsal
    ADD CONSTRAINT rehearsal_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.rehearsal
    ADD CONSTRAINT rehearsal_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.replica
    ADD CONSTRAINT replica_deployment_id_fkey FOREIGN KEY (deployment_id) REFERENCES public.deployment(id);

ALTER TABLE ONLY public.replica_metric
    ADD CONSTRAINT replica_metric_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.replica_metric
    ADD CONSTRAINT replica_metric_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.replica
    ADD CONSTRAINT replica_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.replica_usage
    ADD CONSTRAINT replica_usage_deployment_id_fkey FOREIGN KEY (deployment_id) REFERENCES public.deployment(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.replica_usage
    ADD CONSTRAINT replica_usage_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.replica_usage
    ADD CONSTRAINT replica_usage_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.restored_database
    ADD CONSTRAINT restored_database_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.restored_database
    ADD CONSTRAINT restored_database_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.run
    ADD CONSTRAINT run_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_person_id_fkey FOREIGN KEY (person_id) REFERENCES public.person(id);

ALTER TABLE ONLY public.session
    ADD CONSTRAINT session_token_id_fkey FOREIGN KEY (token_id) REFERENCES public.api_token(id);

ALTER TABLE ONLY public.ssh_key
    ADD CONSTRAINT ssh_key_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.storage_piece
    ADD CONSTRAINT storage_piece_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.storage_piece
    ADD CONSTRAINT storage_piece_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.storage_snapshot
    ADD CONSTRAINT storage_snapshot_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.storage_snapshot
    ADD CONSTRAINT storage_snapshot_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);

ALTER TABLE ONLY public.webhook_delivery
    ADD CONSTRAINT webhook_delivery_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);

ALTER TABLE ONLY public.webhook_delivery
    ADD CONSTRAINT webhook_delivery_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhook(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.webhook
    ADD CONSTRAINT webhook_org_id_fkey FOREIGN KEY (org_id) REFERENCES public.organization(id);
