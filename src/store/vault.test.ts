import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { testDatabase, type TestDatabase } from "../../test/support/database.ts";
import { rotateVault } from "./rotate-vault.ts";
import { keyOf, openVault } from "./vault.ts";

const folder = mkdtempSync(join(tmpdir(), "berth-vault-"));
const database: TestDatabase = await testDatabase();
const { db } = database;
after(async () => {
  await database.drop();
  rmSync(folder, { recursive: true });
});

test("what is sealed opens again, and looks different each time", () => {
  const vault = openVault({ keyFile: join(folder, "one") });
  const sealed = vault.seal("prj_1", "variable:A", "geheim ☃");
  assert.equal(vault.open("prj_1", "variable:A", sealed), "geheim ☃");
  assert.notDeepEqual(vault.seal("prj_1", "variable:A", "geheim ☃"), sealed);
  assert.ok(!sealed.includes("geheim"));
});

test("what is sealed for one project and name opens for no other", () => {
  const vault = openVault({ keyFile: join(folder, "one") });
  const sealed = vault.seal("prj_1", "variable:A", "secret");
  assert.throws(() => vault.open("prj_2", "variable:A", sealed), { name: "VaultRefused" });
  assert.throws(() => vault.open("prj_1", "variable:B", sealed), { name: "VaultRefused" });
  sealed[sealed.length - 20] = (sealed[sealed.length - 20] as number) ^ 1;
  assert.throws(() => vault.open("prj_1", "variable:A", sealed), { name: "VaultRefused" });
  assert.throws(() => vault.open("prj_1", "variable:A", Buffer.from("short")), /damaged/);
});

test("another key file gives a sentence that says what to do", () => {
  const sealed = openVault({ keyFile: join(folder, "one") }).seal("prj_1", "a", "secret");
  assert.throws(() => openVault({ keyFile: join(folder, "two") }).open("prj_1", "a", sealed), /Restore the key file/);
});

test("the key file is private, made once, and refused when others may read it or it is damaged", () => {
  const keyFile = join(folder, "three");
  openVault({ keyFile });
  const text = readFileSync(keyFile, "utf8");
  openVault({ keyFile });
  assert.equal(readFileSync(keyFile, "utf8"), text);
  assert.equal(statSync(keyFile).mode & 0o777, 0o600);
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith(".")),
    [],
  );
  chmodSync(keyFile, 0o644);
  assert.throws(() => openVault({ keyFile }).seal("p", "n", "t"), /chmod 600/);
  chmodSync(keyFile, 0o600);
  writeFileSync(keyFile, "{}");
  assert.throws(() => openVault({ keyFile }).seal("p", "n", "t"), /damaged/);
});

test("a rotation seals every column anew, a running vault follows, and a second rotation drops the first key", async () => {
  const keyFile = join(folder, "four");
  const vault = openVault({ keyFile });
  const sealed = await plant((projectId, name) => vault.seal(projectId, name, `text of ${name}`));
  assert.deepEqual(await rotateVault({ db, keyFile }), { key: 2, resealed: sealed.length });
  await assertSealedWith(2, vault);
  assert.equal(vault.currentKey(), 2);
  await rotateVault({ db, keyFile });
  await assertSealedWith(3, vault);
  assert.deepEqual(Object.keys((JSON.parse(readFileSync(keyFile, "utf8")) as { keys: object }).keys), ["2", "3"]);
});

test("an interrupted rotation goes on with the key that was already made", async () => {
  const keyFile = join(folder, "four");
  const vault = openVault({ keyFile });
  const old = await db.selectFrom("project_variable").select("sealed_value").executeTakeFirstOrThrow();
  await rotateVault({ db, keyFile });
  await db.updateTable("project_variable").set({ sealed_value: old.sealed_value }).execute();
  assert.deepEqual(await rotateVault({ db, keyFile }), { key: 4, resealed: 1 });
  await assertSealedWith(4, vault);
});

type Seal = (projectId: string, name: string) => Buffer;

async function plant(seal: Seal): Promise<readonly string[]> {
  const image = {
    image_ref: "sha256:0",
    kind: "static",
    web_command: "",
    processes: {},
    release_command: null,
    size_bytes: 0,
  };
  await db.insertInto("organization").values({ id: "org_1", slug: "main", name: "main" }).execute();
  await db
    .insertInto("project")
    .values({
      id: "prj_1",
      org_id: "org_1",
      slug: "a",
      name: "a",
      hostname: "a",
      sealed_cron_secret: seal("prj_1", "cron_secret"),
    })
    .execute();
  const value = seal("prj_1", "variable:A");
  await db
    .insertInto("project_variable")
    .values({ org_id: "org_1", project_id: "prj_1", key: "A", sealed_value: value, size_bytes: 1 })
    .execute();
  const password = seal("prj_1", "database_password");
  await db
    .insertInto("project_database")
    .values({
      id: "dbs_1",
      org_id: "org_1",
      project_id: "prj_1",
      role_name: "r",
      database_name: "d",
      sealed_password: password,
    })
    .execute();
  await db
    .insertInto("build")
    .values({
      id: "bld_1",
      org_id: "org_1",
      project_id: "prj_1",
      number: 1,
      origin: "push",
      commit: "c",
      branch: "main",
      message: "",
    })
    .execute();
  const shared = {
    org_id: "org_1",
    project_id: "prj_1",
    trigger: "push",
    build_id: "bld_1",
    commit: "c",
    image_ref: "sha256:0",
    image,
  } as const;
  await db
    .insertInto("deployment")
    .values({ id: "dep_1", number: 1, sealed_variables: seal("prj_1", "deployment:dep_1"), ...shared })
    .execute();
  return ["variable:A", "cron_secret", "database_password", "deployment:dep_1"];
}

async function assertSealedWith(key: number, vault: ReturnType<typeof openVault>): Promise<void> {
  const found: [string, Buffer][] = [];
  for (const row of await db.selectFrom("project").select("sealed_cron_secret").execute())
    found.push(["cron_secret", row.sealed_cron_secret]);
  for (const row of await db.selectFrom("project_variable").select("sealed_value").execute())
    found.push(["variable:A", row.sealed_value]);
  for (const row of await db.selectFrom("project_database").select("sealed_password").execute())
    found.push(["database_password", row.sealed_password]);
  for (const row of await db.selectFrom("deployment").select("sealed_variables").execute())
    found.push(["deployment:dep_1", row.sealed_variables]);
  assert.equal(found.length, 4);
  for (const [name, sealed] of found) {
    assert.equal(keyOf(sealed), key);
    assert.equal(vault.open("prj_1", name, sealed), `text of ${name}`);
  }
}
