-- expand
-- The comment about a preview on the pull request of its branch, at the host of the followed repository. One a preview.
create table preview_comment (
  -- The preview.
  project_id text primary key references project on delete cascade,
  org_id text not null references organization,
  follow_id text not null references project_follow on delete cascade,
  -- The number of the pull request; null: none was found yet.
  request integer,
  request_url text,
  -- The host's id of the comment; null: not posted.
  comment_id text,
  -- What the comment says, in short; null: nothing yet.
  shown text,
  -- Why it was not posted or changed.
  problem text,
  failures integer not null default 0,
  next_attempt_at timestamptz not null default now()
);
create index preview_comment_due on preview_comment (next_attempt_at);
create index preview_comment_of_follow on preview_comment (follow_id);
