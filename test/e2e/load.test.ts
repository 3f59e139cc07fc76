// Runs alone: it sends hundreds of requests a second and must not lose one; tests that compete for the CPU would distort the result.
// Drawn with other operation files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { runsAll } from "../support/draw-cases.ts";
import { liveApp } from "./apps.ts";
import { createApp, type TestApp } from "./platform.ts";
import { eventually } from "../support/eventually.ts";
import { ask, failures, openTalk, startSlowRequests, startTraffic, summary } from "./traffic.ts";
import { inEachWay, startVisitedPlatform, type VisitedPlatform } from "./ways.ts";

const perSecond = runsAll ? 200 : 100;
const slowMs = 10_000;
const deploys = runsAll ? 20 : 9;

let platform: VisitedPlatform;
const apps = new Map<string, TestApp>();
const onTerm = { calm: "finish", hasty: "exit", still: "finish" } as const;
type Slug = keyof typeof onTerm;
let version = 0;

// In a usual run, https.test.ts covers load over HTTPS, if the run draws that file.
inEachWay({ usual: ({ runtime, over }) => runtime === "process" && over === "http" }, (way) => {
  before(async () => {
    // The WebSocket of a replaced deployment must survive half of the deploys, which take more than the default 30 s on a busy machine.
    platform = await startVisitedPlatform(way, Object.keys(onTerm), { BERTH_DRAIN_SECONDS: "600" });
    for (const slug of Object.keys(onTerm) as Slug[]) {
      apps.set(slug, await createApp(platform, slug, liveApp({ version: `${slug} 0`, onTerm: onTerm[slug] })));
      const pushed = await apps.get(slug)?.push();
      assert.equal(pushed?.exitCode, 0, pushed?.stderr);
      await eventually(async () => (await ask(platform.entrance, slug, "/")).status === 200, `${slug} answers`);
    }
  });
  after(() => platform?.destroy());

  test(`${perSecond} requests a second see no failure during ${deploys} deploys`, async (t) => {
    const traffic = startTraffic(platform.entrance, ["calm", "hasty", "still"], perSecond);
    t.after(() => traffic.stop());
    const slow = ["calm", "hasty"].map((slug) => startSlowRequests(platform.entrance, slug, slowMs));
    t.after(() => Promise.all(slow.map((each) => each.stop())));
    const neighbour = await openTalk(platform.entrance, "still");
    const deployed = await openTalk(platform.entrance, "calm");
    const before = (await deploymentsOf("calm")) + (await deploymentsOf("hasty"));
    await firstHalf();
    // Its deployment has been replaced, but the WebSocket stays open until the client closes it.
    assert.equal(deployed.ended(), null);
    assert.equal(await deployed.close(), 1000);
    await secondHalf();
    const made = (await deploymentsOf("calm")) + (await deploymentsOf("hasty")) - before;
    // On a fast machine, all deploys take less time than two slow requests.
    await eventually(
      () => slow.every((each) => each.count() > 1),
      "two slow requests of each application are answered",
    );
    const slowAnswers = (await Promise.all(slow.map((each) => each.stop()))).flat();
    const answers = [...(await traffic.stop()), ...slowAnswers];
    t.diagnostic(`${summary(answers)}; ${made} deploys`);
    assert.equal(made, deploys);
    assert.deepEqual(failures(answers, (body) => /^(calm|hasty|still) \d+( v\d)?$/.test(body)).slice(0, 5), []);
    assert.deepEqual(
      answers.filter((answer) => !answer.body.startsWith(answer.slug)),
      [],
    );
    assert.equal(neighbour.ended(), null, "the WebSocket of another application was cut");
    assert.ok(neighbour.answered() > 10);
    assert.equal(await neighbour.close(), 1000);
  });

  test("a build that leaves a file of 12 TiB says so, and no request of its neighbours fails", async (t) => {
    const traffic = startTraffic(platform.entrance, ["calm", "still"], 50);
    t.after(() => traffic.stop());
    await apps.get("hasty")?.commit({
      "package.json": JSON.stringify({
        name: "huge",
        private: true,
        scripts: { build: "truncate -s 13194139533312 big" },
      }),
    });
    const pushed = await apps.get("hasty")?.push();
    assert.notEqual(pushed?.exitCode, 0);
    assert.match(pushed?.stderr ?? "", /(left files|wrote a file) of more than \d+ MiB/);
    assert.match(pushed?.stderr ?? "", /No traffic was switched/);
    await push("hasty");
    const answers = await traffic.stop();
    t.diagnostic(summary(answers));
    assert.deepEqual(failures(answers, (body) => /^(calm|still) /.test(body)).slice(0, 5), []);
  });
});

async function firstHalf(): Promise<void> {
  await push("calm");
  await push("hasty");
  await scale("calm", 3);
  await push("calm");
  await rollBack("calm");
  if (runsAll) {
    await push("hasty");
    await scale("hasty", 3);
    await push("hasty");
  }
  await greet("calm", "v1");
  await scale("calm", 1);
  await rollBack("hasty");
}

async function secondHalf(): Promise<void> {
  if (runsAll) {
    await push("calm");
    await greet("hasty", "v1");
    await scale("hasty", 1);
    await push("hasty");
  }
  await push("calm");
  // Scale down and up again before the surplus replicas have ended.
  for (const slug of ["calm", "hasty"] as const) {
    await scale(slug, 3);
    for (const replicas of [1, 3, 1]) await put(slug, replicas);
    await scale(slug, 3);
  }
  await rollBack("calm");
  await push("hasty");
  if (!runsAll) return;
  await push("calm");
  await scale("calm", 1);
  await greet("calm", "v2");
  await rollBack("hasty");
  await push("hasty");
  await push("calm");
  await push("hasty");
}

async function push(slug: Slug): Promise<void> {
  version += 1;
  await apps.get(slug)?.commit(liveApp({ version: `${slug} ${version}`, onTerm: onTerm[slug] }));
  const pushed = await apps.get(slug)?.push();
  assert.equal(pushed?.exitCode, 0, pushed?.stderr);
  assert.ok((await ask(platform.entrance, slug, "/")).body.startsWith(`${slug} ${version}`), "exit code 0 means live");
}

async function rollBack(slug: Slug): Promise<void> {
  const answer = await platform.call("POST", `/v1/projects/${slug}/rollback`);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
}

async function greet(slug: Slug, greeting: string): Promise<void> {
  assert.equal((await platform.call("PUT", `/v1/projects/${slug}/env/GREETING`, { value: greeting })).status, 204);
  await eventually(
    async () => (await ask(platform.entrance, slug, "/")).body.endsWith(` ${greeting}`),
    "the variable is seen",
  );
}

async function put(slug: Slug, replicas: number): Promise<void> {
  assert.equal((await platform.call("PUT", `/v1/projects/${slug}/scale`, { replicas })).status, 200);
}

async function scale(slug: Slug, replicas: number): Promise<void> {
  await put(slug, replicas);
  const seen = async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask(platform.entrance, slug, "/replica")));
    return new Set(answers.map((answer) => answer.body)).size;
  };
  await eventually(async () => (await seen()) === replicas, `${replicas} replicas of ${slug} answer`);
}

async function deploymentsOf(slug: Slug): Promise<number> {
  const { body } = await platform.call<{ deployments: { number: number }[] }>(
    "GET",
    `/v1/projects/${slug}/deployments`,
  );
  return body.deployments[0]?.number ?? 0;
}
