-- What is counted and measured of projects. A sample is added to a bucket of each width as it comes in, so nothing is rolled up
-- later, and old buckets of a width are deleted together.

-- The last counts seen of each counter of an edge. Under them an increase is counted once, whoever looks and however often.
create table edge_counter (
  counter text not null,
  project_id text not null references project on delete cascade,
  requests bigint not null,
  -- By first digit of the status, 1 to 5.
  classes bigint[] not null,
  bytes_in bigint not null,
  bytes_out bigint not null,
  -- Not cumulative: one count a bucket of the port's bounds, and one beyond them.
  latencies bigint[] not null,
  latency_sum_ms double precision not null,
  seen_at timestamptz not null default now(),
  primary key (counter, project_id)
);
create index edge_counter_seen on edge_counter (seen_at);

create table project_metric (
  project_id text not null references project on delete cascade,
  org_id text not null references organization,
  -- 60, 900 or 3600.
  bucket_seconds integer not null,
  at timestamptz not null,
  requests bigint not null default 0,
  -- Answers with 500 or above.
  errors bigint not null default 0,
  classes bigint[] not null default '{0,0,0,0,0}',
  bytes_in bigint not null default 0,
  bytes_out bigint not null default 0,
  latencies bigint[] not null default '{}',
  latency_sum_ms double precision not null default 0,
  -- Looks at the first page; times are sums over those that got an answer.
  looks integer not null default 0,
  failed_looks integer not null default 0,
  dns_looks integer not null default 0,
  dns_ms double precision not null default 0,
  connect_ms double precision not null default 0,
  first_byte_ms double precision not null default 0,
  total_ms double precision not null default 0,
  slowest_ms double precision not null default 0,
  primary key (project_id, bucket_seconds, at)
) with (fillfactor = 70);
create index project_metric_old on project_metric (bucket_seconds, at);
create index project_metric_of_org on project_metric (org_id, bucket_seconds, at);

-- The newest measurement of each replica. CPU seconds count from the start of the attempt.
create table replica_usage (
  deployment_id text not null references deployment on delete cascade,
  ordinal integer not null,
  org_id text not null references organization,
  project_id text not null references project on delete cascade,
  attempt integer not null,
  cpu_seconds double precision not null,
  memory_bytes bigint not null,
  processes integer not null,
  measured_at timestamptz not null,
  primary key (deployment_id, ordinal)
) with (fillfactor = 70);
create index replica_usage_of_project on replica_usage (project_id);

create table replica_metric (
  project_id text not null references project on delete cascade,
  org_id text not null references organization,
  -- 60, 900 or 3600.
  bucket_seconds integer not null,
  at timestamptz not null,
  ordinal integer not null,
  samples integer not null default 0,
  -- Processor time, and the time in which it was used.
  cpu_seconds double precision not null default 0,
  seconds double precision not null default 0,
  memory_bytes_sum double precision not null default 0,
  memory_bytes_most bigint not null default 0,
  processes_most integer not null default 0,
  primary key (project_id, bucket_seconds, at, ordinal)
) with (fillfactor = 70);
create index replica_metric_old on replica_metric (bucket_seconds, at);

-- The newest look at each application's first page, and when the next is due.
create table page_look (
  project_id text primary key references project on delete cascade,
  org_id text not null references organization,
  next_at timestamptz not null,
  looked_at timestamptz,
  http_status integer,
  failure text,
  dns_ms double precision,
  connect_ms double precision,
  first_byte_ms double precision,
  total_ms double precision
) with (fillfactor = 70);
create index page_look_due on page_look (next_at);

-- How much lies in each project's storage folder, and when to measure it again.
create table storage_size (
  project_id text primary key references project on delete cascade,
  org_id text not null references organization,
  size_bytes bigint,
  measured_at timestamptz,
  next_at timestamptz not null
);
create index storage_size_due on storage_size (next_at);

-- What happened, newest first, is read from here and from the rows that tell it themselves.
create index activity_of_org_by_time on activity (org_id, created_at desc, id desc);
create index activity_of_project_by_time on activity (project_id, created_at desc, id desc);
create index deployment_decided on deployment (project_id, finished_at desc, id desc) where finished_at is not null;
create index deployment_decided_of_org on deployment (org_id, finished_at desc, id desc) where finished_at is not null;
create index build_failed on build (project_id, finished_at desc, id desc) where status = 'failed' and finished_at is not null;
create index build_failed_of_org on build (org_id, finished_at desc, id desc) where status = 'failed' and finished_at is not null;
create index cron_run_failed on cron_run (project_id, finished_at desc, id desc) where status in ('failed', 'timeout', 'unknown') and finished_at is not null;
create index cron_run_failed_of_org on cron_run (org_id, finished_at desc, id desc) where status in ('failed', 'timeout', 'unknown') and finished_at is not null;

-- Adds two lists of counts, element by element; the shorter one counts as zero where it ends.
create function add_counts(a bigint[], b bigint[]) returns bigint[] language sql immutable parallel safe as $$
  select array_agg(coalesce(x, 0) + coalesce(y, 0) order by n) from unnest(a, b) with ordinality as t(x, y, n)
$$;

create aggregate sum_counts(bigint[]) (sfunc = add_counts, stype = bigint[], initcond = '{}', parallel = safe);
