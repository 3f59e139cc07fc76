import { login } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import type { Result } from "../../src/contract/routes.ts";
import { loginOf } from "../../src/ports/postgres-host.suite.ts";
import { startPlatform, type TestApp, type TestPlatform } from "../../test/e2e/platform.ts";
import { eventually } from "../../test/support/eventually.ts";
import { rehearseOnCopy } from "../../test/support/rehearse-on-copy.ts";
import { byHand, compared, freshFolder, lockedApp, pushLive } from "./deploy.ts";
import { startServer } from "./own-server.ts";
import { inTurns, medians, timed, timeRow, type BenchRow } from "./row.ts";

const slug = "shop";

/** Measures a push of a new branch, whose preview gets data of its own, and the first answer of an application that sleeps. */
export async function measurePreviews(): Promise<BenchRow[]> {
  await using platform = await startPlatform({ BERTH_PREVIEWS_PER_PROJECT: "100" });
  const app = await lockedApp(platform, slug);
  await platform.call("POST", `/v1/projects/${slug}/database`);
  await platform.call("PUT", `/v1/projects/${slug}/settings`, { previews: ["*"], preview_data: "branch" });
  return [await measureBranchPushes(platform, app), await measureWakes(platform)];
}

/** A project of the same source that has no data is what a branch's preview would be without a database. */
async function measureBranchPushes(platform: TestPlatform, app: TestApp): Promise<BenchRow> {
  await pushLive(platform, app, { slug, text: slug });
  const pushFirst = async (round: number) => {
    const first = `first-${round}`;
    return pushLive(platform, await lockedApp(platform, first), { slug: first, text: first });
  };
  const pushBranch = async (round: number) => {
    const branch = `branch-${round}`;
    await app.commit({ "text.txt": branch });
    return pushLive(platform, app, { slug: `${branch}--${slug}`, text: branch }, branch);
  };
  const rounds = await inTurns(5, { theirs: pushFirst, ours: pushBranch }, 1);
  const name = "push of a new branch to the first 200 of its preview, with data of its own";
  return compared(name, "a first push of a project without data", { ...rounds, goal: 1.3 });
}

/** Projects fall asleep after a minute without requests, so those of all rounds do at the same time. */
async function measureWakes(platform: TestPlatform): Promise<BenchRow> {
  const slugs = ["bear", "bat", "mole"];
  const apps: TestApp[] = [];
  for (const each of slugs) {
    const app = await lockedApp(platform, each);
    await pushLive(platform, app, { slug: each, text: each });
    await platform.call("PUT", `/v1/projects/${each}/settings`, { sleep_after_minutes: 1 });
    apps.push(app);
  }
  const isAsleep = async (of: string) =>
    (await platform.call<Result<"projects.get">>("GET", `/v1/projects/${of}`)).body.health?.state === "asleep";
  const hand = freshFolder("hand");
  const rounds = await inTurns(slugs.length, {
    async theirs(round) {
      const steps = await byHand(apps[round] as TestApp, hand, slugs[round] as string);
      return (steps["starting until healthy"] ?? 0) + 300;
    },
    async ours(round) {
      await eventually(() => isAsleep(slugs[round] as string), "it sleeps");
      return timed(() => platform.visit(slugs[round] as string));
    },
  });
  const against = "its own start by hand, and 0.3 s";
  return timeRow("the first answer of an application that sleeps", against, { ...medians(rounds), goal: 1 });
}

/** Compares the time for which a rehearsal says that a table was locked with what a second session saw in `pg_locks`. */
export async function measureLocks(): Promise<BenchRow[]> {
  await using server = await startServer();
  const { host, spec } = server;
  const session = await login(server.endpoint, loginOf(spec));
  await session.query("create table orders (id int)");
  await session.end();
  const rows: BenchRow[] = [];
  for (const seconds of [0.2, 1, 5]) {
    let theirs = 0;
    const { report } = await rehearseOnCopy(host, spec, async (copy) => {
      const open = () => login({ ...copy, engine_version: "" }, { ...loginOf(spec), password: copy.password });
      const [changing, watching] = [await open(), await open()];
      const changed = changing.query(`begin; alter table orders add extra int; select pg_sleep(${seconds}); commit`);
      const seenAt: number[] = [];
      const locks = `select 1 from pg_locks where relation = 'orders'::regclass and mode = 'AccessExclusiveLock' and granted`;
      const watch = async () => {
        for (let isHeld = false; isHeld || seenAt.length === 0;) {
          isHeld = (await watching.query(locks)).length > 0;
          if (isHeld) seenAt.push(performance.now());
        }
      };
      await Promise.all([changed, watch()]);
      theirs = (seenAt.at(-1) ?? 0) - (seenAt[0] ?? 0);
      await Promise.all([changing.end(), watching.end()]);
    });
    const ours = 1000 * (report.tables.find(({ table }) => table === "public.orders")?.reads_blocked_seconds ?? 0);
    const name = `lock of ${seconds} s: what the rehearsal's report is off by`;
    const off = { ours: Math.abs(ours - theirs), theirs: Math.max(100, theirs / 10), goal: 1 };
    rows.push(timeRow(name, "10 % of what pg_locks showed, or 0.1 s", off));
  }
  return rows;
}
