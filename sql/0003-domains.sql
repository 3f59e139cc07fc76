-- Hostnames of users. One project has a hostname at a time, over all organizations.

create table domain (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  hostname text not null unique,
  -- The part that was registered: `example.com` of `www.example.com`.
  zone text not null,
  dns_status text not null default 'pending' check (dns_status in ('pending', 'ok', 'mismatch')),
  dns_detail text not null,
  -- When the TXT record with this organization's proof was last seen.
  txt_seen_at timestamptz,
  check_begun_at timestamptz,
  checked_at timestamptz,
  next_check_at timestamptz not null default now(),
  -- Set while the name is served; the edge's routes are made from it.
  verified_at timestamptz,
  -- Since when a served name leads elsewhere.
  lost_at timestamptz,
  ssl_status text not null default 'pending' check (ssl_status in ('pending', 'issuing', 'active', 'failed')),
  ssl_detail text,
  ssl_next_attempt_at timestamptz,
  created_at timestamptz not null default now()
);
create index domain_of_project on domain (org_id, project_id, id desc);
create index domain_due on domain (next_check_at);
create index domain_served on domain (project_id) where verified_at is not null;

-- What an organization has to do with a hostname: the text that proves its control over the zone, and whether it ever had the
-- name. It outlives the attachment, so that a name whose records still lead here is not simply the next one's.
create table domain_claim (
  org_id text not null references organization,
  hostname text not null,
  zone text not null,
  proof text not null,
  held_at timestamptz,
  verified_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (org_id, hostname)
);
create index domain_claim_held on domain_claim (hostname) where held_at is not null;
create index domain_claim_verified on domain_claim (zone) where verified_at is not null;
