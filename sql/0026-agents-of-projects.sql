-- expand
-- `preview`: tokens in approval mode deploy to previews only, and a person promotes them.
alter table project add column agents text not null default 'deploy' check (agents in ('deploy', 'preview'));
