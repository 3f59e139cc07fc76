-- A project may be one folder of its repository, and a build keeps what its commit's berth.json says of the deployment.
alter table project add column root text;
alter table project add column watch text[];
alter table build add column settings jsonb;
