-- expand
-- A person whom the operator disabled signs in nowhere.
alter table person add column disabled_at timestamptz;

create or replace function can_sign_in(wanted text) returns boolean language sql stable as $$
  select exists (select from person where id = wanted and disabled_at is null) and (
    exists (select from passkey where person_id = wanted)
    or exists (select from identity join provider using (issuer) where person_id = wanted))
$$;
