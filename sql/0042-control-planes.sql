-- Each process of Berth on this database, while it lives. How requests find the process that can serve them.
create table control_plane (
  -- As in the table of machines.
  name text primary key,
  owner text not null,
  roles text[] not null,
  -- Where other processes reach its control port.
  url text not null,
  seen_at timestamptz not null
);
