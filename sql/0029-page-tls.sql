-- How long a look at the first page of an application took for the TLS handshake, where the page is served over HTTPS.
alter table page_look add column tls_ms double precision;
alter table project_metric add column tls_looks integer not null default 0, add column tls_ms double precision not null default 0;
