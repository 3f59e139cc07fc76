-- Certificates of hostnames, whoever ordered them. Private keys are sealed.

-- The account at a certificate authority, by its directory.
create table acme_account (
  directory text primary key,
  sealed_key bytea not null,
  -- Null until it is registered.
  url text,
  created_at timestamptz not null default now()
);

create table certificate (
  id text primary key,
  -- May be a wildcard: `*.apps.example.com`.
  hostname text not null unique,
  challenge text not null check (challenge in ('http-01', 'dns-01')),
  -- Whether somebody is served under the name; one that is not keeps its certificate until its end, for the case that it comes back.
  wanted boolean not null default true,
  -- Of the last attempt.
  status text not null default 'pending' check (status in ('pending', 'issuing', 'active', 'failed')),
  detail text not null default 'No attempt was made yet.',
  failures integer not null default 0,
  -- Of an active one: its renewal.
  next_attempt_at timestamptz not null default now(),
  ordered_at timestamptz,
  -- The certificate that serves; a failed renewal leaves it.
  chain_pem text,
  sealed_key bytea,
  not_before timestamptz,
  not_after timestamptz,
  lease_owner text,
  lease_until timestamptz,
  fence integer not null default 0,
  created_at timestamptz not null default now()
);
create index certificate_due on certificate (next_attempt_at) where wanted;
create index certificate_ordered on certificate (ordered_at);

-- What certificate authorities and our own probes are answered with.
create table acme_challenge (
  token text primary key,
  hostname text not null,
  answer text not null,
  created_at timestamptz not null default now()
);

drop trigger change_noted on domain;
create trigger change_noted after update of dns_status, verified_at, lost_at on domain for each row execute function note_change('domain');

-- A certificate's new status is a change of the hostname that it is for.
create function note_certificate_change() returns trigger language plpgsql as $$
begin
  if new.status is distinct from old.status or new.not_after is distinct from old.not_after then
    update domain set dns_status = dns_status where hostname = new.hostname;
  end if;
  return null;
end $$;
create trigger change_noted after update of status, not_after on certificate for each row execute function note_certificate_change();

alter table domain drop column ssl_status, drop column ssl_detail, drop column ssl_next_attempt_at;
