-- Who wrote a build's commit, as git says; null for builds of before, and where a commit names nobody.
alter table build add column author text;
