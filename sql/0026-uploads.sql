-- Source that comes without git: nobody waits for it at the control plane that took it, so a crash does not end its build.
alter table build drop constraint build_origin_check;
alter table build add constraint build_origin_check check (origin in ('push', 'upload', 'redeploy'));
alter table deployment drop constraint deployment_trigger_check;
alter table deployment add constraint deployment_trigger_check
  check (trigger in ('push', 'upload', 'redeploy', 'rollback', 'variables', 'restart'));
drop index deployment_pushed;
create index deployment_pushed on deployment (project_id, number desc) where trigger in ('push', 'upload') and activated_at is not null;
