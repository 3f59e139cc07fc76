-- The certificates that an edge serves with, confirmed as its routes are.
alter table edge add column certificate_version bigint not null default 0;
