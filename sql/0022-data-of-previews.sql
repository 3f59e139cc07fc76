-- expand
-- What a new preview of the project's branches begins with: an empty database, or a branch of the project's.
alter table project add column preview_data text not null default 'empty' check (preview_data in ('empty', 'branch', 'masked'));
