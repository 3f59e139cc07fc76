-- What the present or last attempt at a certificate did, step by step with its times; people and agents watch an order by it.
alter table certificate add column steps jsonb not null default '[]';

-- A step of an order is a change of the hostname too, so that who watches sees it at once.
create or replace function note_certificate_change() returns trigger language plpgsql as $$
begin
  if (new.status, new.detail, new.not_after) is distinct from (old.status, old.detail, old.not_after) then
    update domain set dns_status = dns_status where hostname = new.hostname;
  end if;
  return null;
end $$;
drop trigger change_noted on certificate;
create trigger change_noted after update of status, detail, not_after on certificate for each row execute function note_certificate_change();
