-- When edges first served a certificate of the name: until then it is stored, but not in force.
alter table certificate add column confirmed_at timestamptz;
update certificate set confirmed_at = now() where chain_pem is not null;
