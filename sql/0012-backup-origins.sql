-- A backup is asked for, or the day's own: no other kind was ever made.
alter table backup drop constraint backup_origin_check;
alter table backup add constraint backup_origin_check check (origin in ('manual', 'daily'));
