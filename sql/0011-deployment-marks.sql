-- What a deployment began with, so that no change of it is lost and no two databases are written at once.

alter table deployment
  -- The project's `variables_changed_at` as this was made: what it settles when it ends.
  add column variables_changed_at timestamptz,
  -- The database that it keeps because another one was promoted meanwhile; null: the project's live one.
  add column database_name text;
