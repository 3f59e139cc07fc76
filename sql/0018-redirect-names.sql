-- expand
-- The name to which the edge redirects requests for this one; null: the name serves the application.
alter table domain add column redirect_id text references domain (id) on delete set null;
create index domain_redirected on domain (redirect_id) where redirect_id is not null;
drop trigger route_changed on domain;
create trigger route_changed after insert or delete or update of hostname, verified_at, redirect_id on domain
  for each row execute function route_of_domain_changed();
drop trigger change_noted on domain;
create trigger change_noted after update of dns_status, verified_at, lost_at, redirect_id on domain
  for each row execute function note_change('domain');
