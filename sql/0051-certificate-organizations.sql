-- The organization that the name belongs to; null for the platform's own names.
alter table certificate add column org_id text references organization (id);
update certificate c set org_id = coalesce(
  (select org_id from domain where hostname = c.hostname),
  (select org_id from project where hostname = c.hostname and purged_at is null),
  (select org_id from earlier_name where hostname = c.hostname));
