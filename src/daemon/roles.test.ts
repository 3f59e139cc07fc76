import assert from "node:assert/strict";
import { test } from "node:test";
import { formatOwner, isKnownDead, ownIdentity } from "../kit/processes.ts";
import { readConfig } from "./config.ts";
import { requireSharedDatabase } from "./own-database.ts";

test("a process has all roles unless it names some, in any order, and an option of the command line wins", () => {
  assert.deepEqual(readConfig({}).roles, ["api", "git", "reconcile", "edge"]);
  assert.deepEqual(readConfig({ BERTH_ROLES: "edge, api" }).roles, ["api", "edge"]);
  assert.deepEqual(readConfig({ BERTH_ROLES: "edge" }, { BERTH_ROLES: "api" }).roles, ["api"]);
});

test("an unknown role is refused, and git without what works on the same folder", () => {
  assert.throws(() => readConfig({ BERTH_ROLES: "api,worker" }), /of the roles api, .*, not "api,worker"/);
  assert.throws(() => readConfig({ BERTH_ROLES: "git,api" }), /git also needs api and reconcile/);
});

test("without git a process needs the database of a primary", () => {
  assert.throws(() => requireSharedDatabase(readConfig({ BERTH_ROLES: "api" })), /Set BERTH_DATABASE_URL/);
  requireSharedDatabase(readConfig({ BERTH_ROLES: "api", BERTH_DATABASE_URL: "postgresql://db/berth" }));
  requireSharedDatabase(readConfig({}));
});

test("the owner of a lease in another container on the same machine is not known to be dead", () => {
  const [boot, , start] = formatOwner(ownIdentity()).split("/");
  assert.equal(isKnownDead(formatOwner(ownIdentity())), false);
  assert.equal(isKnownDead(`${boot}/4194303/${start}`), true);
  assert.equal(isKnownDead(`${boot}/4194303/${start}/1`), false);
});
