-- A rollback makes the variables of the deployment that it goes back to the project's own, in the moment it goes live. They wait here, each
-- sealed as the project's variables are.
alter table deployment add column restored_variables jsonb;
