-- The check of notifiers must not read delivered messages.
create index notification_given_up on notification (finished_at) where status = 'given_up';
