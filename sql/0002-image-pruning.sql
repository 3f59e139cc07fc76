-- An image that is gone can no longer be rolled back to.
alter table deployment add column image_pruned_at timestamptz;
