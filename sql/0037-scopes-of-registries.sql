-- Tokens that had every right of their role so far have those for registries too. A narrowed token stays as narrow as it was.
update api_token set scopes = scopes || '{registries:read,registries:write}'::text[]
where role = 'owner' and not scopes && '{registries:read,registries:write}'::text[]
  and scopes @> '{projects:read,projects:write,deployments:read,deployments:write,env:read,env:write,domains:read,domains:write,cron:read,cron:write,database:read,database:write,data:read,data:write,backups:read,backups:write,logs:read,metrics:read,activity:read,tokens:read,tokens:write,ssh-keys:read,ssh-keys:write,webhooks:read,webhooks:write,approvals:read}'::text[];

update api_token set scopes = scopes || '{registries:read}'::text[]
where role = 'member' and not scopes @> '{registries:read}'::text[]
  and scopes @> '{projects:read,projects:write,deployments:read,deployments:write,env:read,env:write,domains:read,domains:write,cron:read,cron:write,database:read,database:write,data:read,backups:read,backups:write,logs:read,metrics:read,activity:read,tokens:read,tokens:write,ssh-keys:read,ssh-keys:write,approvals:read}'::text[];
