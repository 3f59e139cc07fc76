-- expand
-- How far a chain's log went at some moments, so that a restore to a moment reads no more of it than it needs.
create table archive_mark (
  chain_id text not null references archive_chain on delete cascade,
  position bigint not null,
  -- Every transaction that was acknowledged by then lies before the position.
  at timestamptz not null,
  primary key (chain_id, position)
);
