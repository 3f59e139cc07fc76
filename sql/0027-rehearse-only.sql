-- expand
-- Builds and deployments whose release command only runs on a copy of the data: nothing of them goes live. They are pushes for which nobody
-- waits, so that a version before this one neither builds nor activates them.
alter table build add column rehearse_only boolean not null default false;
alter table deployment add column rehearse_only boolean not null default false;
-- The request for an approval that a build is rehearsed for.
alter table build add column approval_id text references approval on delete set null;
create index build_of_approval on build (approval_id) where approval_id is not null;
