-- expand
-- A preview is a project that serves another branch of a project; it has a repository, a database and variables of its own.
alter table project
  add column preview_of text references project,
  add column git_branch text,
  add column preview_expires_at timestamptz,
  -- Of a project: the branches that get previews, as patterns, and the variables that previews inherit.
  add column previews text[],
  add column preview_variables text[],
  add constraint project_preview_check check (
    (preview_of is null) = (git_branch is null) and (preview_of is null) = (preview_expires_at is null)
    and (preview_of is null or previews is null));
create unique index project_preview on project (preview_of, git_branch) where purged_at is null;
create index project_preview_ends on project (preview_expires_at) where purged_at is null;
