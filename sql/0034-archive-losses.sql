-- expand
-- A segment of a chain's log that was found missing or damaged: only copies behind it show what came later.
create table archive_loss (
  chain_id text not null references archive_chain on delete cascade,
  -- Where the segment begins.
  position bigint not null,
  -- The last moment that is shown by what is before it.
  until timestamptz,
  primary key (chain_id, position)
);
-- A damaged copy is used no more, but its file stays as long as a whole one's.
alter table archive_copy drop constraint archive_copy_status_check;
alter table archive_copy add constraint archive_copy_status_check check (status in ('copying', 'completed', 'damaged'));
