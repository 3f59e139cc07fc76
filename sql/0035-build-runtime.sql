-- The runtime that a build is for, where a move asked for one; null: that of the project's active deployment, else the platform's first.
alter table build add column runtime text;
