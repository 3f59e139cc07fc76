import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { findPostgres, findProgram, findSystemProgram } from "./find-program.ts";

test("what a user installed below a home is found first, but not given to sandboxes, which cannot see it", () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-programs-"));
  try {
    writeFileSync(join(folder, "env"), "#!/bin/sh\n");
    chmodSync(join(folder, "env"), 0o755);
    symlinkSync("/usr/bin/id", join(folder, "id"));
    assert.equal(findProgram("env", folder), join(folder, "env"));
    assert.match(findSystemProgram("env", folder) ?? "", /^\/usr\//);
    assert.match(findSystemProgram("id", folder) ?? "", /^\/usr\//);
    assert.equal(findSystemProgram("no-such-program", folder), null);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

// Major versions far above any real one, so that this machine's PostgreSQL has no influence.
let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "berth-postgres-"));
  await plant("newest", 99, ["initdb", "postgres", "pg_ctl", "pg_dump", "pg_restore"]);
  await plant("older", 98, ["initdb", "postgres", "pg_ctl", "pg_dump", "pg_restore"]);
  await plant("no-clients", 97, ["initdb", "postgres", "pg_ctl"]);
  await plant("client-only", 96, ["pg_dump", "pg_restore"]);
  await plant("ancient", 9, ["initdb", "postgres", "pg_ctl", "pg_dump", "pg_restore"]);
  await mkdir(join(folder, "links"));
  await symlink(join(folder, "newest/postgres"), join(folder, "links/postgres"));
});
after(() => rm(folder, { recursive: true, force: true }));

test("the newest installation on the search path is chosen", async () => {
  const found = await search(["older", "newest"]);
  assert.deepEqual([found?.major, found?.bin], [99, join(folder, "newest")]);
});

test("a link to the server leads to the folder with all of its programs", async () => {
  assert.equal((await search(["links"]))?.bin, join(folder, "newest"));
});

test("data written by one major restricts the search to it", async () => {
  assert.equal((await search(["newest", "older"], 98))?.major, 98);
  assert.equal(await search(["newest"], 95), null);
});

test("a server without client programs is found, and that they are missing", async () => {
  const found = await search(["no-clients"], 97);
  assert.deepEqual([found?.major, found?.pgDump, found?.pgRestore], [97, null, null]);
});

test("client programs alone and majors below 15 are no installation", async () => {
  assert.equal(await search(["client-only"], 96), null);
  assert.equal(await search(["ancient"], 9), null);
});

function search(names: readonly string[], only?: number) {
  return findPostgres({ searchPath: names.map((name) => join(folder, name)).join(":"), ownFolders: [], only });
}

async function plant(name: string, major: number, programs: readonly string[]): Promise<void> {
  const bin = join(folder, name);
  await mkdir(bin);
  for (const program of programs) {
    const text = `#!/bin/sh\necho "${program} (PostgreSQL) ${major}.4 (Debian ${major}.4-0+deb12u1)"\n`;
    await writeFile(join(bin, program), text, { mode: 0o755 });
  }
}
