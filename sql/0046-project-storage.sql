-- A project without storage is bound to no machine: a swarm runs its replicas anywhere.
alter table project add column storage boolean not null default true;
