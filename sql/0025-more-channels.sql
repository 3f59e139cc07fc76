-- expand
alter table webhook drop constraint webhook_format_check;
alter table webhook add constraint webhook_format_check check (format in ('json', 'slack', 'discord', 'telegram', 'ntfy', 'teams', 'email'));
