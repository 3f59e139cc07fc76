-- expand
-- What each machine used over time, in buckets of the same widths as those of projects.
create table machine_metric (
  machine text not null,
  bucket_seconds integer not null,
  at timestamptz not null,
  samples integer not null,
  cpus_sum double precision not null,
  memory_bytes_sum bigint not null,
  disk_bytes_most bigint not null,
  primary key (machine, bucket_seconds, at)
);
