-- A check of a part that is not configured is off: neither good nor bad.

alter table monitor_check drop constraint monitor_check_status_check,
  add constraint monitor_check_status_check check (status in ('off', 'ok', 'warn', 'fail', 'unknown'));
