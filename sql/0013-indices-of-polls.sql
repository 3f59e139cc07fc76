-- What is asked again and again must not read whole histories: these find the few rows that are still of interest.
create index deployment_leased on deployment (lease_until) where lease_until is not null;
create index build_leased on build (lease_until) where lease_until is not null;
create index deployment_of_build on deployment (build_id);
create index deployment_pushed on deployment (project_id, number desc) where trigger = 'push' and activated_at is not null;
create index deployment_by_time on deployment (created_at);
create index activity_crashed on activity (created_at) where action in ('replica.crashed', 'replica.out_of_memory');
