// Drawn with other operation files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { existsSync, realpathSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { run, type Command } from "../../kit/exec.ts";
import { silentLog } from "../../kit/log.ts";
import { clientCommand } from "../../postgres/client-program.ts";
import { findProgram } from "./find-program.ts";
import {
  ensureMachine,
  findHaproxy,
  missingParts,
  type FoundParts,
  type MachineFacts,
  type MachineParts,
} from "./machine.ts";

// npm passes the caller's folders to its scripts in npm_… variables. Another user cannot use them.
const inherited = Object.entries(process.env as Record<string, string>).filter(([name]) => !name.startsWith("npm_"));
const environment = Object.fromEntries(inherited);
const bwrap = findProgram("bwrap", "");
const apt = findProgram("apt-get", "");
const skip = (bwrap === null && "needs bubblewrap") || (apt === null && "needs a Debian machine");
const isRoot = process.getuid?.() === 0;
const timeoutMs = 5 * 60_000;

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "berth-machine-"));
  await chmod(folder, 0o777);
});
after(() => rm(folder, { recursive: true, force: true }));

test("what is found is an absolute path, what isn't is named, and nothing is installed unasked", async () => {
  const dataDir = join(folder, "unasked");
  const look = () => ensureMachine({ dataDir, log: silentLog, install: false, environment });
  await look();
  assert.equal(existsSync(dataDir), false, "only a start makes the data folder");
  await mkdir(dataDir);
  const parts = await look();
  const { missing, postgresMajor: _, ...paths } = parts;
  for (const path of Object.values(paths)) assert.ok(path === null || path.startsWith("/"));
  for (const part of missing) assert.ok(part.effect !== "" && part.command !== "");
  const kept = await readdir(join(dataDir, "toolchain")).catch(() => []);
  assert.deepEqual(kept, parts.postgresMajor === null ? [] : ["postgres-major"]);
});

test(
  "a bare machine is set up by an ordinary user without root's help, and the next start finds everything",
  { skip },
  async () => {
    const dataDir = join(folder, "bare");
    const { parts: first, said } = await setUpBare(dataDir);
    const own = join(dataDir, "toolchain");
    assert.deepEqual(
      first.missing.filter((part) => part.required),
      [],
      said,
    );
    for (const path of [first.postgresBin, first.bwrap, first.haproxy])
      assert.ok(path?.startsWith(own), `${path} is not in ${own}`);
    assert.deepEqual(
      (await readdir(own)).filter((name) => name.startsWith(".")),
      [],
    );
    assert.deepEqual((await setUpBare(dataDir)).parts, first);
    assert.equal(await confinedDump(first), 0, "pg_dump starts where it sees the system and its own folder only");
    const { initdb, dump, haproxy } = await tryPrograms(first);
    const major = /^pg_dump \(PostgreSQL\) (\d+)/.exec(dump)?.[1];
    assert.match(initdb, new RegExp(`^initdb \\(PostgreSQL\\) ${major}\\.`), "the server is as old as its clients");
    assert.match(haproxy, /^HAProxy version/);
  },
);

async function tryPrograms(parts: MachineParts): Promise<{ initdb: string; dump: string; haproxy: string }> {
  const initdb = await run({ file: join(parts.postgresBin ?? "", "initdb"), args: ["--version"] });
  const dump = await run({ file: parts.pgDump ?? "", args: ["--version"] });
  const haproxy = await run(await hidden([parts.haproxy ?? "", "-v"]));
  return { initdb: initdb.stdout, dump: dump.stdout, haproxy: haproxy.stdout };
}

/** Runs pg_dump as backups do. */
async function confinedDump({ postgresBin, pgDump, pgRestore }: MachineParts): Promise<number | null> {
  const configDir = join(folder, "users");
  await mkdir(configDir);
  for (const name of ["passwd", "group"]) await writeFile(join(configDir, name), "");
  const login = { host: folder, port: 1, user: "nobody", password: "", database: "" };
  const confinement = { binDir: postgresBin ?? "", bwrap, uid: isRoot ? 65534 : null };
  const { command, env } = clientCommand(
    { confinement, configDir, pgDump, pgRestore },
    { program: "pg_dump", args: ["--version"], login },
  );
  return (await run(command, { env })).exitCode;
}

/** Runs the setup as a user without rights, and hides the machine's PostgreSQL, bubblewrap, and HAProxy with two of its libraries. */
async function setUpBare(dataDir: string): Promise<{ parts: MachineParts; said: string }> {
  const home = join(folder, "home");
  await mkdir(home, { recursive: true });
  await chmod(home, 0o777);
  const script = join(folder, "set-up.ts");
  const log = `const log = { debug() {}, info() {}, warn(fields, text) { console.error(text, fields); }, error() {}, child: () => log };`;
  const call = `ensureMachine({ dataDir: ${JSON.stringify(dataDir)}, log, install: true, environment: process.env })`;
  const module = join(import.meta.dirname, "machine.ts");
  const lines = [
    `import { ensureMachine } from ${JSON.stringify(module)};`,
    log,
    `console.log(JSON.stringify(await ${call}));`,
  ];
  await writeFile(script, lines.join("\n"));
  const env = { ...environment, NODE_USE_SYSTEM_CA: "1", HOME: home, TMPDIR: tmpdir() };
  const placement = { cwd: folder, env, timeoutMs, ...(isRoot ? { uid: 65534, gid: 65534 } : {}) };
  const result = await run(await hidden([process.execPath, script]), placement);
  assert.equal(result.exitCode, 0, result.stderr);
  return { parts: JSON.parse(result.stdout) as MachineParts, said: result.stderr };
}

async function hidden(words: readonly string[]): Promise<Command> {
  const host = ["--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"];
  const files = [bwrap ?? "", ...(await haproxyFiles())].flatMap((file) => ["--ro-bind", "/dev/null", file]);
  const status = join(folder, "dpkg-status");
  await writeFile(status, await packagesWithout(/^(?:haproxy|postgresql.*|pgbackrest|lib(?:lua\d|opentracing).*)$/), {
    mode: 0o644,
  });
  const without = ["--tmpfs", "/usr/lib/postgresql", ...files, "--ro-bind", status, "/var/lib/dpkg/status"];
  const path = ["--setenv", "PATH", `${dirname(process.execPath)}:/usr/bin:/bin`];
  return { file: bwrap ?? "", args: [...host, ...without, ...path, ...words] };
}

async function haproxyFiles(): Promise<string[]> {
  const program = findProgram("haproxy", "");
  if (program === null) return [];
  const { stdout } = await run({ file: "ldd", args: [program] });
  const libraries = Array.from(stdout.matchAll(/=> (\S*(?:lua|opentracing)\S*) /g), ([, path]) => path as string);
  return [program, ...libraries].map((path) => realpathSync(path));
}

/** Returns dpkg's list of installed packages without those of these names. */
async function packagesWithout(names: RegExp): Promise<string> {
  const packages = (await readFile("/var/lib/dpkg/status", "utf8")).split("\n\n");
  return packages.filter((text) => !names.test(/^Package: (.*)$/m.exec(text)?.[1] ?? "")).join("\n\n");
}

for (const [version, isNewEnough] of [
  ["1.8.30", false],
  ["2.2.9-2+deb11u6", false],
  ["2.6.12-1+deb12u2", true],
  ["3.0.1", true],
] as const) {
  test(`HAProxy ${version} is ${isNewEnough ? "used" : "left alone"}`, async () => {
    const folder = await mkdtemp(join(tmpdir(), "berth-haproxy-version-"));
    const file = join(folder, "haproxy");
    await writeFile(file, `#!/bin/sh\necho "HAProxy version ${version} 2023/12/16 - https://haproxy.org/"\n`, {
      mode: 0o755,
    });
    assert.equal(await findHaproxy([null, join(folder, "missing"), file]), isNewEnough ? file : null);
    await rm(folder, { recursive: true });
  });
}

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
  "mkfs.ext4": "/usr/sbin/mkfs.ext4",
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

test("only root makes file systems, and a minimal Debian lacks the program", () => {
  const [part] = missingParts({ ...complete, "mkfs.ext4": null }, root);
  assert.equal(part?.command, "apt-get install e2fsprogs");
  assert.deepEqual(missingParts({ ...complete, "mkfs.ext4": null }, user), []);
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
