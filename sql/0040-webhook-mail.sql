-- E-mail as a form of webhooks. An address gets nothing but a code until an owner of the organization has given that code back.
alter table webhook drop constraint webhook_format_check;
alter table webhook add constraint webhook_format_check check (format in ('json', 'slack', 'discord', 'email'));
alter table webhook add column confirmed boolean not null default true;

-- Mails with a code that the organization has had since then. Here, because a webhook that is deleted must not make room for the next mail.
alter table organization add column codes_since timestamptz not null default now();
alter table organization add column codes_mailed integer not null default 0;

-- The fingerprint that the SSH host of a followed repository must show; null: the first one that it shows is remembered.
alter table project_follow add column host_key_pin text;
