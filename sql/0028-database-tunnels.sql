-- Ways into a project's database through the control plane, each with a role of its own that ends with it.
create table database_tunnel (
  id text primary key,
  org_id text not null references organization,
  project_id text not null references project,
  -- Only the token that asked for it may open it.
  token_id text not null,
  purpose text not null check (purpose in ('session', 'dump', 'import')),
  format text check (format in ('custom', 'plain')),
  -- Null: the live one, whatever it is when the tunnel opens.
  database_name text,
  status text not null default 'waiting' check (status in ('waiting', 'open', 'closed')),
  role_name text,
  close_reason text,
  created_at timestamptz not null default now(),
  opened_at timestamptz,
  closed_at timestamptz,
  -- The control plane that carries it moves this on; once it has passed, the tunnel is dead and its role is dropped.
  alive_until timestamptz not null default now() + interval '60 seconds'
);
create index database_tunnel_live on database_tunnel (org_id) where status <> 'closed';
create index database_tunnel_old on database_tunnel (created_at);
