-- expand
-- When the organization last asked for the hostname, granted or refused: while two ask, only a TXT record proves whose it is.
alter table domain_claim add column asked_at timestamptz not null default now();
update domain_claim set asked_at = coalesce(held_at, created_at);
create index domain_claim_hostname on domain_claim (hostname);
drop index domain_claim_held;

-- The registered domain of the name, for which authorities limit the new certificates of a week, and when the name got its first one.
alter table certificate add column zone text, add column first_issued_at timestamptz;
update certificate set first_issued_at = not_before;
create index certificate_of_zone on certificate (zone, first_issued_at);
