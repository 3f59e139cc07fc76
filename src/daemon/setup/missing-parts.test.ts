import assert from "node:assert/strict";
import { test } from "node:test";

import { missingParts, type MachineFacts } from "./missing-parts.ts";
import type { FoundParts } from "./found-parts.ts";

const complete: FoundParts = {
  wantsPostgres: true,
  wantsHaproxy: true,
  postgresBin: "/usr/lib/postgresql/15/bin",
  postgresMajor: 15,
  pgDump: "/usr/lib/postgresql/15/bin/pg_dump",
  pgRestore: "/usr/lib/postgresql/15/bin/pg_restore",
  bwrap: "/usr/bin/bwrap",
  git: "/usr/bin/git",
  setpriv: "/usr/bin/setpriv",
  haproxy: "/usr/sbin/haproxy",
  nft: "/usr/sbin/nft",
  ip: "/usr/sbin/ip",
  pasta: "/usr/bin/pasta",
  socat: "/usr/bin/socat",
  python: "/usr/bin/python3",
  go: "/usr/bin/go",
  npm: "/usr/bin/npm",
};
const user: MachineFacts = { pinnedMajor: undefined, isRoot: false, hasApt: true };
const root: MachineFacts = { ...user, isRoot: true };

test("a complete machine lacks nothing", () => {
  assert.deepEqual(missingParts(complete, user), []);
});

test("PostgreSQL is required and the command is one that this user can run", () => {
  const lacking = { ...complete, postgresBin: null, postgresMajor: null, pgDump: null, pgRestore: null };
  const [part] = missingParts(lacking, user);
  assert.deepEqual([part?.required, part?.command], [true, "sudo apt-get install postgresql"]);
  assert.equal(missingParts(lacking, root)[0]?.command, "apt-get install postgresql");
});

test("existing data asks for the major that wrote it", () => {
  const lacking = { ...complete, postgresBin: null };
  const [part] = missingParts(lacking, { ...root, pinnedMajor: 16 });
  assert.deepEqual([part?.part, part?.command], ["PostgreSQL 16", "apt-get install postgresql-16"]);
});

test("a database of the operator's own makes PostgreSQL unnecessary", () => {
  assert.deepEqual(missingParts({ ...complete, wantsPostgres: false, postgresBin: null }, user), []);
});

test("without pg_dump only backups suffer", () => {
  const [part] = missingParts({ ...complete, pgDump: null }, root);
  assert.deepEqual([part?.required, part?.command], [false, "apt-get install postgresql-client-15"]);
});

test("one way to a network of its own is enough", () => {
  assert.deepEqual(missingParts({ ...complete, pasta: null }, root), []);
  assert.deepEqual(missingParts({ ...complete, nft: null }, root), []);
  assert.equal(missingParts({ ...complete, pasta: null }, user)[0]?.part, "passt");
});

test("a system without apt is told what to install", () => {
  const [part] = missingParts({ ...complete, git: null }, { ...user, hasApt: false });
  assert.equal(part?.command, "install git with this system's package manager");
});

test("HAProxy is required where applications are served, and nowhere else", () => {
  const [part] = missingParts({ ...complete, haproxy: null }, user);
  assert.deepEqual([part?.required, part?.command], [true, "sudo apt-get install haproxy"]);
  assert.deepEqual(missingParts({ ...complete, haproxy: null, wantsHaproxy: false }, user), []);
});
