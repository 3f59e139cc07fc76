// Drawn with other S3 files: every run restores from a copy of the folder `backups` what this one restores from S3.
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { start } from "../../src/kit/exec.ts";
import { slowness } from "../../tools/test/slowness.ts";
import { cliUser } from "../support/cli.ts";
import { drawCases } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { missingForTemplate } from "../support/missing-for-template.ts";
import { missingForSwift, startSwift } from "../support/swift.ts";
import { notesApp } from "../e2e/apps.ts";
import { berthd, createApp, layGround, restore, startPlatform, type TestPlatform } from "../e2e/platform.ts";
import { killProcesses, processesNaming } from "../e2e/processes.ts";
import { ask, startAsking } from "../e2e/traffic.ts";

const possible = Object.keys(missingForTemplate).filter((name) => missingForTemplate[name] === false);
const names = drawCases(possible, 2);
/** The tables of the templates that keep rows. */
const tables: Readonly<Record<string, string>> = { nextjs: "note", django: "notes_note" };
/** The other templates answer with the variable GREETING, but for this one. */
const withoutGreeting = ["static", ...Object.keys(tables)];
const secretOf = (name: string) => `sealed for ${name}`;
/** As it stands, Berth would show none of it. */
const loudly = "printenv GREETING | tr a-z A-Z";
// What is archived every five seconds also has to be stored, which takes a moment while ten applications run beside it.
const mostLostMs = 6000;
const mostPromotedSeconds = 60;

test(
  "a lost machine comes back from S3 alone, and so does its standby: applications, rows, files and secrets",
  { skip: missingForSwift },
  async (t) => {
    const server = await startSwift();
    t.after(() => server.close());
    const safe = mkdtempSync(join(tmpdir(), "berth-safe-"));
    t.after(() => rmSync(safe, { recursive: true, force: true }));
    const [settings, key] = [await server.bucket("lost"), join(safe, "recovery.key")];

    const lost = await startPlatform(settings);
    t.after(() => lose(lost));
    for (const name of names) await deploy(lost, name);
    const ledger = await createApp(lost, "ledger", notesApp);
    assert.equal((await lost.call("POST", "/v1/projects/ledger/database")).status, 201);
    const pushed = await ledger.push();
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.equal((await lost.visit("ledger", "/add")).body, "rows 1 file kept");
    await berth(lost, "ledger", "backups", "create", "--files");
    assert.match(await berth(lost, "ledger", "platform", "backup"), /Backed up/);
    cpSync(join(lost.dataDir, "recovery.key"), key);
    const standby = await layGround(settings);
    t.after(() => removeAll(standby.dataDir));
    const follower = start(berthd("follow", "s3", "--key", key), { env: standby.env });
    t.after(() => follower.kill("SIGKILL"));
    await eventually(() => existsSync(join(standby.dataDir, "standby")), "the standby has the backup");
    const adding = startAsking(() => ask(lost.edgePort, "ledger", "/add"), 5);
    await sleep(20_000);
    const lostAt = Date.now();
    await lose(lost);
    const added = (await adding.stop()).filter(({ status }) => status === 200).toSorted((a, b) => a.atMs - b.atMs);

    const { dataDir } = await layGround();
    const restored = await restore({ ...settings, BERTH_DATA: dataDir }, "s3", key);
    assert.equal(restored.exitCode, 0, restored.stderr);
    assert.doesNotMatch(restored.stdout, /NOT restored/);
    const platform = await startPlatform(settings, { dataDir });
    t.after(() => removeAll(dataDir));
    const body = async (slug: string) => (await platform.visit(slug).catch(() => undefined))?.body ?? "";
    const allAnswer = (page: typeof body) =>
      Promise.all(
        names.map((name) => eventually(async () => (await page(slugOf(name))).includes(answerOf(name)), name)),
      );
    await allAnswer(body);
    const rows = await eventually(
      async () => /^rows (\d+) file kept$/.exec(await body("ledger"))?.[1],
      "the ledger answers",
    );
    const tookSeconds = Math.round((Date.now() - lostAt) / 1000);
    const oldestLost = added[Number(rows) - 1];
    const tailMs = oldestLost === undefined ? 0 : lostAt - oldestLost.atMs;
    t.diagnostic(
      `${names.length + 1} applications answered ${tookSeconds} s after the loss; of ${added.length + 1} rows ${rows} came back, all older than ${tailMs} ms`,
    );
    assert.ok(tailMs < mostLostMs * slowness(), `a row was lost that was ${tailMs} ms old`);
    for (const name of names.filter((each) => withoutGreeting.includes(each)))
      assert.equal(await berth(platform, slugOf(name), "run", loudly), `${secretOf(name).toUpperCase()}\n`);
    await platform.destroy();

    const promotedAt = Date.now();
    const promoted = start(berthd("promote"), { env: standby.env });
    t.after(() => promoted.kill("SIGKILL"));
    const ofStandby = async (slug: string) => (await ask(standby.ports.edge, slug, "/")).body;
    await allAnswer(ofStandby);
    await eventually(async () => /^rows \d+ file kept$/.test(await ofStandby("ledger")), "the ledger answers there");
    const promotedSeconds = Math.round((Date.now() - promotedAt) / 1000);
    t.diagnostic(`they answered ${promotedSeconds} s after the promotion of the standby`);
    assert.ok(promotedSeconds < mostPromotedSeconds * slowness(), `${promotedSeconds} s`);
  },
);

const slugOf = (name: string) => `of-${name}`;

/** What the application of a template answers with, before and after. */
function answerOf(name: string): string {
  if (name in tables) return `kept by ${name}`;
  return withoutGreeting.includes(name) ? "Hello from a static site" : secretOf(name);
}

/** Deploys a template, with a secret, and a row where it keeps rows. */
async function deploy(platform: TestPlatform, name: string): Promise<void> {
  const slug = slugOf(name);
  await berth(platform, slug, "create", slug, "--template", name);
  await berth(platform, slug, "env", "set", `GREETING=${secretOf(name)}`);
  if (name in tables) await berth(platform, slug, "data", "insert", tables[name] ?? "", `text=kept by ${name}`);
  const answers = async () => (await platform.visit(slug)).body.includes(answerOf(name));
  await eventually(answers, `the template ${name} answers with what it was given`);
}

async function berth(platform: TestPlatform, project: string, ...args: string[]): Promise<string> {
  await using user = await cliUser({ url: platform.api, token: platform.token });
  const { exitCode, stdout, stderr } = await user.berth(args, { env: { BERTH_PROJECT: project } });
  assert.equal(exitCode, 0, `berth ${args.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}

/** Kills all processes of a platform at once and deletes all that it stored on its machine. */
async function lose(platform: TestPlatform): Promise<void> {
  const end = platform.end("SIGKILL");
  killProcesses(processesNaming(platform.dataDir));
  await end;
  removeAll(platform.dataDir);
}

function removeAll(dataDir: string): void {
  killProcesses(processesNaming(dataDir));
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
}
