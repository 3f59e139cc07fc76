-- expand
-- The build of a preview whose image this build gives to its project; nothing is built again.
alter table build add column promoted_from text;
