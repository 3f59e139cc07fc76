-- Names that renamed projects had: they lead to the project, and no other one gets them, until they expire.
create table earlier_name (
  org_id text not null references organization,
  project_id text not null references project,
  slug text not null,
  hostname text not null unique,
  expires_at timestamptz not null,
  primary key (org_id, slug)
);
create index earlier_name_of_project on earlier_name (project_id);
create trigger route_changed after insert or delete on earlier_name for each row execute function route_of_domain_changed();
