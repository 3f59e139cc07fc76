-- What the checks found last, the alerts that came of it, and the machines that report.

-- One row for each thing that is watched: a whole check (subject '') or one of its subjects that is not as it ought to be.
create table monitor_check (
  name text not null,
  -- The machine that was looked at; '' for what all machines share, which whoever looked last has written.
  machine text not null,
  subject text not null,
  status text not null check (status in ('ok', 'warn', 'fail', 'unknown')),
  detail text not null,
  hint text,
  -- Of the present status.
  since timestamptz not null,
  -- When it stopped being ok; null while it is.
  bad_since timestamptz,
  last_ok_at timestamptz,
  checked_at timestamptz not null,
  primary key (name, machine, subject)
);

create table alert (
  id text primary key,
  name text not null,
  machine text not null,
  subject text not null,
  severity text not null check (severity in ('warning', 'critical')),
  summary text not null,
  hint text,
  opened_at timestamptz not null,
  resolved_at timestamptz,
  -- Not told before this: an alert that comes back soon after it was resolved is told late, or not at all.
  notify_at timestamptz not null,
  -- The severity that the operator was last told of.
  told_severity text check (told_severity in ('warning', 'critical'))
);
-- Several control planes watch at once; one alert comes of it.
create unique index alert_open on alert (name, machine, subject) where resolved_at is null;
create index alert_listed on alert (id desc);
create index alert_resolved on alert (name, machine, subject, resolved_at desc) where resolved_at is not null;

-- The machines that a control plane runs on, as each of them describes itself.
create table machine (
  name text primary key,
  description jsonb not null,
  started_at timestamptz not null,
  seen_at timestamptz not null
);
