-- Where a project's database listens, in libpq's words: a name, an address, or the folder of its Unix socket, which the port names.
alter table project_database rename column socket_path to host;
update project_database set host = regexp_replace(host, '/[^/]*$', '') where host is not null;
