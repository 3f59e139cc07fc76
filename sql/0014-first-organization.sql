-- The organization of the first start belongs to whoever runs the machine: its projects get the plain hostnames, and the limit of 10
-- projects is not meant for it.
alter table organization add column is_first boolean not null default false;
update organization set is_first = true where id = (select id from organization order by created_at, id limit 1);
update organization set max_projects = 1000 where is_first and max_projects = 10;
create unique index organization_is_first on organization (is_first) where is_first;
