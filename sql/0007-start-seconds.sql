-- expand
-- How long a deployment of the project may take until it is healthy; null: what its image asks for, or the platform's default.
alter table project add column start_seconds integer check (start_seconds between 1 and 900);
