-- expand
-- The projects that a token is limited to, by id, so that a later project with the same slug is not reached; null: all of its organization.
alter table api_token add column project_ids text[];
