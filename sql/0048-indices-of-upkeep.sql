-- What looks for dead leases and old rows every few seconds must not read the rows of what has ended.
create index run_leased on run (lease_until) where lease_until is not null;
create index notification_leased on notification (lease_until) where lease_until is not null;
create index notification_ended on notification (finished_at) where status <> 'queued';
create index alert_old on alert (resolved_at) where resolved_at is not null;
-- The newest deployment of an image, for pruning images.
create index deployment_of_image on deployment (project_id, image_ref, number desc);
