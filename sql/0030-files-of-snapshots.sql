-- expand
-- The list of the pieces that hold the index of a backup's files; null: none was made.
alter table backup add column file_index text;
-- What a restore puts into the live files, and the folder below `.restored` that it is taken from instead of a backup.
alter table backup_operation add column path text;
alter table backup_operation add column folder text;
-- Whether it may take the place of what is there, which is kept.
alter table backup_operation add column replaces boolean not null default false;
