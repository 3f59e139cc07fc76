// Drawn with other data files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Decrypter } from "age-encryption";
import { WebSocket } from "ws";
import { missingPart } from "../../adapters/postgres-host-local/test-fixture.ts";
import { tunnelProtocol } from "../../contract/table.ts";
import { tunnelsTask } from "../../reconcile/databases/tunnels-task.ts";
import { specOf } from "./database.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../../../test/support/backups.ts";
import { cliUser, type CliUser } from "../../../test/support/cli.ts";
import { testToken } from "../../../test/support/test-platform.ts";
import { eventually } from "../../../test/support/eventually.ts";

const withoutPsql = existsSync("/usr/bin/psql") ? false : "psql is not installed";

describe("tunnels to a project's database", { skip: missingPart || withoutPsql }, () => {
  let platform: BackupPlatform;
  let project: TestProject;
  let user: CliUser;

  before(async () => {
    platform = await startBackupPlatform();
    project = await platform.project();
    await project.query(`CREATE TABLE notes (id int PRIMARY KEY, body text);
      INSERT INTO notes SELECT n, 'note ' || n FROM generate_series(1, 1000) n`);
    user = await cliUser({ url: platform.api.baseUrl, token: platform.org.owner });
  });
  after(async () => {
    await user[Symbol.asyncDispose]();
    await platform.close();
  });

  const path = (rest: string) => `/v1/projects/${project.slug}/database/${rest}`;
  const berth = (...args: string[]) => user.start([...args, "-p", project.slug]).ended;
  const psql = (...args: string[]) => user.start(["db", "psql", "-p", project.slug, "--", "-XAt", ...args]).ended;
  const roles = async () =>
    (await project.query("SELECT rolname FROM pg_roles WHERE rolname LIKE '%\\_t%' AND rolname LIKE 'u%'")).map(
      ({ rolname }) => rolname,
    );
  const rolesGone = () => eventually(async () => (await roles()).length === 0, "no tunnel's role is left");
  const ask = async (what: string, body: object = {}, token = platform.org.owner) => {
    const asked = await platform.api.call("POST", path(what), { token, body });
    assert.equal(asked.status, 201, asked.text);
    return asked.body["id"] as string;
  };
  const open = (id: string, token = platform.org.owner) =>
    openSocket(platform.api.baseUrl + path(`tunnels/${id}`), token);

  test("psql works with the project's own rights, as a role that ends with it", async () => {
    const sql = `SELECT current_user = session_user, rolsuper, (SELECT count(*) FROM notes) FROM pg_roles WHERE rolname = current_user`;
    const { stdout, stderr, exitCode } = await psql(
      "-c",
      sql,
      "-c",
      "CREATE TABLE made (a int)",
      "-c",
      "SET ROLE NONE",
      "-c",
      "CREATE TABLE own (a int)",
    );
    assert.deepEqual([stdout.split("\n")[0], stderr, exitCode], ["f|f|1000", "", 0]);
    await rolesGone();
    const owners = await project.query(
      "SELECT DISTINCT tableowner FROM pg_tables WHERE tablename IN ('made', 'own', 'notes')",
    );
    assert.equal(owners.length, 1);
    assert.equal((await psql("-c", "CREATE ROLE loot")).exitCode, 1);
    await rolesGone();
  });

  test("neither the answer nor the activity holds a password", async () => {
    const asked = await platform.call("POST", path("sessions"), {});
    assert.deepEqual(Object.keys(asked.body).toSorted(), [
      "backup_id",
      "branch",
      "close_reason",
      "closed_at",
      "created_at",
      "database",
      "encrypted",
      "format",
      "id",
      "purpose",
      "status",
    ]);
    const socket = await open(String(asked.body["id"]));
    const { password } = (await socket.next("ready")) as { password: string };
    assert.ok(password.length >= 32);
    socket.close();
    const stored = await platform.api.database.db.selectFrom("activity").selectAll().execute();
    assert.ok(!JSON.stringify(stored).includes(password));
    await rolesGone();
  });

  test("a tunnel serves once, and only the token that asked for it", async () => {
    const id = await ask("sessions");
    const other = await testToken(platform.api.database.db, platform.org.id, { role: "owner" });
    assert.equal((await refused(open(id, other.text))).status, 409);
    const first = await open(id);
    await first.next("ready");
    assert.equal((await refused(open(id))).status, 409);
    assert.equal((await platform.call("GET", path(`tunnels/${id}`))).body["status"], "open");
    first.close();
    await rolesGone();
    assert.equal((await refused(open("tun_none"))).status, 404);
    assert.equal((await refused(open(id, "berth_o_nothing"))).status, 401);
    assert.equal((await refused(openSocket(`${platform.api.baseUrl}/v1/projects`, platform.org.owner))).status, 404);
    const foreign = await openSocketAs(platform.api.baseUrl + path(`tunnels/${id}`), {
      host: "evil.example",
      token: platform.org.owner,
    });
    assert.equal(foreign, 400);
  });

  test("members get nothing of it, agents wait for a human, and reading tokens are refused", async () => {
    const agent = await testToken(platform.api.database.db, platform.org.id, { role: "owner", approval_mode: true });
    const reader = await testToken(platform.api.database.db, platform.org.id, {
      role: "owner",
      scopes: ["data:read", "database:read"],
    });
    const status = async (what: string, token: string) => {
      const { body } = await platform.api.call("POST", path(what), { token, body: {} });
      return body["code"] ?? "asked";
    };
    for (const what of ["sessions", "dump", "import"]) {
      assert.equal(await status(what, platform.org.member), "owner_only", what);
      assert.equal(await status(what, reader.text), "insufficient_scope", what);
    }
    assert.equal(await status("sessions", agent.text), "approval_required");
    assert.equal(await status("import", agent.text), "approval_required");
  });

  test("a token that is revoked ends its session at once", async () => {
    const token = await testToken(platform.api.database.db, platform.org.id, { role: "owner" });
    const socket = await open(await ask("sessions", {}, token.text), token.text);
    await socket.next("ready");
    const { db } = platform.api.database;
    await db.updateTable("api_token").set({ revoked_at: new Date() }).where("id", "=", token.id).execute();
    await platform.api.database.db
      .transaction()
      .execute((tx) => platform.api.platform.wakeups.send(tx, "tokens", token.id));
    assert.notEqual((await socket.closed).code, 1000);
    await rolesGone();
  });

  test("what a dead control plane has left is taken away", async () => {
    const { db } = platform.api.database;
    const spec = specOf(platform.api.platform.vault, await project.row());
    const role_name = `${spec.role_name}_tdead`;
    await platform.host.openSessionRole(spec, { role_name, password: "x".repeat(32) });
    await platform.host.createDatabase(spec, "imported_half");
    const id = await ask("import");
    await db
      .updateTable("database_tunnel")
      .set({ status: "open", role_name, database_name: "imported_half", alive_until: new Date(0).toISOString() })
      .where("id", "=", id)
      .execute();
    await platform.startTask(() => tunnelsTask(platform.platform));
    await rolesGone();
    const status = async () => (await platform.call("GET", path(`tunnels/${id}`))).body["status"];
    await eventually(async () => (await status()) === "closed", "the tunnel is closed");
    assert.ok(!(await platform.host.listDatabases(spec)).includes("imported_half"));
  });

  for (const format of ["custom", "plain"] as const)
    test(`a ${format} dump is imported into a new database and promoted`, async () => {
      const file = join(user.home, `notes.${format}`);
      const dumped = await berth("db", "dump", "--format", format, "-o", file);
      assert.deepEqual([dumped.stderr, dumped.exitCode], ["", 0]);
      const imported = await berth("db", "import", file, "--json");
      assert.equal(imported.exitCode, 0, imported.stderr);
      const { database } = JSON.parse(imported.stdout) as { database: string };
      const counted = await psql(
        "-c",
        `\\c ${database}`,
        "-c",
        "SELECT count(*), min(tableowner) <> session_user FROM notes, pg_tables WHERE tablename = 'notes'",
      );
      assert.match(counted.stdout, /^1000\|t$/m);
      const further = await platform.call("GET", path("restored"));
      assert.ok(JSON.stringify(further.body).includes(database));
      assert.equal((await platform.call("POST", path("promote"), { database })).status, 200);
      await rolesGone();
    });

  test("a file that breaks off or holds an error leaves nothing", async () => {
    const whole = await readFile(join(user.home, "notes.custom"));
    const spec = specOf(platform.api.platform.vault, await project.row());
    const before = await platform.host.listDatabases(spec);
    const broken = join(user.home, "broken.custom");
    await writeFile(broken, whole.subarray(0, whole.length - 500));
    const wrong = join(user.home, "wrong.sql");
    await writeFile(wrong, "CREATE TABLE half (a int);\nINSERT INTO nowhere VALUES (1);\n");
    for (const file of [broken, wrong]) {
      const { exitCode, stderr } = await berth("db", "import", file);
      assert.notEqual(exitCode, 0, file);
      assert.match(stderr, /import|tunnel/, file);
    }
    await rolesGone();
    assert.deepEqual(await platform.host.listDatabases(spec), before);
  });

  test("a backup is downloaded as a file that loads; a damaged one leaves no file", async () => {
    const { id } = await platform.backup(project.slug);
    const other = await platform.project();
    await project.query("CREATE TABLE later (a int)");
    const download = (...args: string[]) => berth("backups", "download", id, ...args);
    const text = await download("--format", "plain", "-o", "backup.sql");
    assert.deepEqual([text.stderr, text.exitCode], ["", 0]);
    const statements = await readFile(join(user.home, "backup.sql"), "utf8");
    assert.match(statements, /\tnote 1000\n/);
    assert.doesNotMatch(statements, /TABLE public\.later/);
    const saved = JSON.parse((await download("--json")).stdout) as { file: string; bytes: number };
    const archive = await readFile(saved.file);
    assert.deepEqual([archive.subarray(0, 5).toString(), archive.length], ["PGDMP", saved.bytes]);
    const again = await download();
    assert.match(again.stderr, /exists already/);
    assert.deepEqual(await readFile(saved.file), archive);
    const sealed = JSON.parse((await download("--age", "--json")).stdout) as { file: string };
    assert.match(sealed.file, /\.dump\.age$/);
    const age = new Decrypter();
    age.addIdentity(platform.recoveryKey);
    assert.deepEqual(Buffer.from(await age.decrypt(await readFile(sealed.file))), archive);

    const dump = (slug: string, body: object) => platform.call("POST", `/v1/projects/${slug}/database/dump`, body);
    assert.equal((await dump(other.slug, { backup_id: id })).status, 404);
    assert.equal((await dump(project.slug, { backup_id: id, database: "postgres" })).status, 409);

    const { storage_key } = await platform.api.database.db
      .selectFrom("backup")
      .select("storage_key")
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    const stored = join(platform.backupsDir, storage_key ?? "");
    const bytes = await readFile(stored);
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    await writeFile(stored, bytes);
    const damaged = await download("-o", "damaged.dump");
    assert.notEqual(damaged.exitCode, 0);
    assert.equal(existsSync(join(user.home, "damaged.dump")), false);
  });

  test("an organization has so many tunnels and no more", async () => {
    const { db } = platform.api.database;
    await db.updateTable("database_tunnel").set({ status: "closed" }).execute();
    for (let opened = 0; opened < 10; opened += 1) await ask("dump");
    const { status, body } = await platform.call("POST", path("dump"), {});
    assert.deepEqual([status, body["code"]], [409, "conflict"]);
    await db.updateTable("database_tunnel").set({ status: "closed" }).execute();
  });
});

interface TestSocket {
  next(type: string): Promise<unknown>;
  close(): void;
  readonly closed: Promise<{ code: number; reason: string }>;
}

class NotOpened extends Error {
  readonly status: number;
  constructor(status: number) {
    super(`refused with ${status}`);
    this.status = status;
  }
}

async function refused(opening: Promise<TestSocket>): Promise<{ status: number }> {
  const fault = await opening.then(
    () => assert.fail("the tunnel was opened"),
    (error: unknown) => error,
  );
  return fault as NotOpened;
}

function openSocket(url: string, token: string): Promise<TestSocket> {
  const socket = new WebSocket(url.replace("http", "ws"), tunnelProtocol, {
    headers: { authorization: `Bearer ${token}` },
  });
  const told: Record<string, unknown>[] = [];
  let tell = () => {};
  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) return;
    told.push(JSON.parse(data.toString()) as Record<string, unknown>);
    tell();
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.on("close", (code, reason) => resolve({ code, reason: reason.toString() })),
  );
  const next = (type: string) =>
    new Promise<unknown>((resolve) => {
      tell = () => {
        const found = told.find((message) => message["type"] === type);
        if (found !== undefined) resolve(found);
      };
      tell();
    });
  return new Promise((resolve, reject) => {
    socket.once("open", () => resolve({ next, close: () => socket.close(), closed }));
    socket.once("unexpected-response", (_, { statusCode }) => reject(new NotOpened(statusCode ?? 0)));
    socket.on("error", reject);
  });
}

function openSocketAs(url: string, { host, token }: { host: string; token: string }): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url.replace("http", "ws"), tunnelProtocol, {
      headers: { host, authorization: `Bearer ${token}` },
    });
    socket.on("error", () => {});
    socket.once("open", () => reject(new Error("the tunnel was opened")));
    socket.once("unexpected-response", (_, { statusCode }) => resolve(statusCode ?? 0));
  });
}
