-- Old history is found without reading all of it.
create index activity_by_time on activity (created_at);
create index approval_ended on approval (created_at) where status not in ('pending', 'approved');
create index build_by_time on build (created_at);
create index deployment_rolled_back_from on deployment (rolled_back_from) where rolled_back_from is not null;
create index deployment_restored_from on deployment (restored_from) where restored_from is not null;
