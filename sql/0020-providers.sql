-- expand
-- Identity providers of the platform, and the identities with which people sign in. Issuer and subject find an account, never an e-mail address.
create table provider (
  id text primary key,
  kind text not null check (kind in ('oidc', 'github')),
  name text not null,
  issuer text not null unique,
  client_id text not null,
  sealed_secret bytea not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table identity (
  id text primary key,
  person_id text not null references person,
  issuer text not null,
  subject text not null,
  -- How the provider names the person, for people to read.
  label text not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  unique (issuer, subject)
);
create index identity_of_person on identity (person_id);

alter table passkey add column id text not null default 'pky_' || replace(gen_random_uuid()::text, '-', '');
alter table passkey add column name text not null default 'Passkey';
create unique index passkey_by_id on passkey (id);

-- When the person last proved to be there: by a passkey, or by signing in anew at a provider.
alter table session add column fresh_at timestamptz;
alter table session drop constraint session_method_check;
alter table session add constraint session_method_check
  check (method in ('passkey', 'invitation', 'switch', 'provider', 'link'));

create function can_sign_in(wanted text) returns boolean language sql stable as $$
  select exists (select from passkey where person_id = wanted)
    or exists (select from identity join provider using (issuer) where person_id = wanted)
$$;
