-- expand
-- The token that requested a build; null: none, or an earlier version stored it.
alter table build add column token_id text;
-- A cron job calls its path or, if it has one, runs its command in the application's image; its path is empty then.
alter table cron_job add column command text;
-- What the last change replaced: schedule, path, command, enabled.
alter table cron_job add column previous jsonb;
alter table cron_run add column exit_code integer;
