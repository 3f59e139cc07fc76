-- One-off commands in a terminal: only the token that asked may open it, once.
alter table run add terminal boolean not null default false;
alter table run add token_id text;
