// Drawn with other operation files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { liveApp, type AppTraits } from "./apps.ts";
import { createApp, type TestApp } from "./platform.ts";
import { listProcesses } from "./processes.ts";
import { eventually } from "../support/eventually.ts";
import { ask, failures, startTraffic } from "./traffic.ts";
import { inEachWay, startVisitedPlatform, type VisitedPlatform } from "./ways.ts";
import { drawCases } from "../support/draw-cases.ts";
import { edgePid, servingPid } from "../support/edges.ts";
import { seededRandom } from "../support/seeded-random.ts";

const random = seededRandom();
const marker = `crash-${process.pid}`;
/** The response body of each commit. */
const texts = new Map<string, string>();
let platform: VisitedPlatform;
let app: TestApp;
let version = 0;

/** When to kill the control plane: `afterMs` after git printed `line`, or after the push began if `line` is empty. */
interface Instant {
  readonly phase: string;
  readonly line: string;
  readonly afterMs: readonly [number, number];
  readonly traits?: Partial<AppTraits>;
}

const instants: Instant[] = [
  { phase: "the push is received", line: "", afterMs: [0, 120] },
  { phase: "the build runs", line: "building now", afterMs: [0, 200], traits: { buildMs: 1500 } },
  { phase: "the release command runs", line: "releasing now", afterMs: [0, 200], traits: { releaseMs: 1500 } },
  { phase: "the new replica starts", line: "Starting", afterMs: [150, 600], traits: { listenAfterMs: 1500 } },
  ...[0, 100, 200, 300].map((from) => {
    const afterMs = [from, from + 100] as const;
    return { phase: `the switch is near (${from} to ${from + 100} ms after the start)`, line: "Starting", afterMs };
  }),
  { phase: "the deployment is being activated", line: "Live at", afterMs: [0, 0] },
  { phase: "the branch has not moved yet", line: "Live at", afterMs: [5, 15] },
  { phase: "git ends", line: "Live at", afterMs: [15, 60] },
];

inEachWay(
  { usual: ({ runtime }) => runtime === "process" },
  (way) => {
    before(async () => {
      platform = await startVisitedPlatform(way, ["survivor"]);
      app = await createApp(platform, "survivor", appWith({}));
      await remember();
      const pushed = await app.push();
      assert.equal(pushed.exitCode, 0, pushed.stderr);
      await eventually(
        async () => (await ask(platform.entrance, "survivor", "/")).status === 200,
        "the application answers",
      );
    });
    after(() => platform?.destroy());

    for (const instant of drawCases(instants, 2, random)) {
      test(`killed while ${instant.phase}: old or new serves, all comes to its end, the next push works`, async (t) => {
        const traffic = startTraffic(platform.entrance, ["survivor"], 50);
        t.after(() => traffic.stop());
        await app.commit(appWith(instant.traits ?? {}));
        await remember();
        const pushed = await pushAndKill(instant);
        await platform.restart();
        await settle();
        const active = await assertConsistent();
        if (pushed.exitCode === 0) assert.equal(active.commit, await app.head(), "exit code 0 means live");
        t.diagnostic(
          `the push ended with ${pushed.exitCode}; ${active.commit === (await app.head()) ? "new" : "old"} serves`,
        );
        await assertNextPushWorks();
        const answers = await traffic.stop();
        assert.deepEqual(failures(answers, (body) => [...texts.values()].includes(body)).slice(0, 3), []);
        await assertNothingElseRuns();
      });
    }

    test("killed while the replaced deployment still answers: that answer arrives, then it ends", async () => {
      const old = texts.get((await activeDeployment()).commit);
      const slow = ask(platform.entrance, "survivor", "/slow?ms=6000");
      await sleep(100);
      await app.commit(appWith({}));
      await remember();
      assert.equal((await app.push()).exitCode, 0);
      await platform.end("SIGKILL");
      await platform.restart();
      const answer = await slow;
      assert.deepEqual([answer.status, answer.body], [200, old], answer.error ?? "");
      await settle();
      await assertConsistent();
      await assertNothingElseRuns();
    });

    test("a second kill while the first one is being recovered from changes nothing", async () => {
      await app.commit(appWith({ listenAfterMs: 800 }));
      await remember();
      await pushAndKill({ phase: "", line: "Starting", afterMs: [100, 300] });
      for (let round = 0; round < 2; round += 1) {
        await platform.restart();
        await sleep(random() * 200);
        await platform.end("SIGKILL");
      }
      await platform.restart();
      await settle();
      await assertConsistent();
      await assertNextPushWorks();
      await assertNothingElseRuns();
    });

    test("a killed edge comes back by itself", async () => {
      const stateDir = join(platform.dataDir, "haproxy");
      const [main, serving] = [edgePid(stateDir), servingPid(stateDir)];
      const running = listProcesses().find(({ pid }) => pid === main);
      assert.ok(running, "the edge is a process of its own");
      assert.notEqual(running.uid, 0, "and never root's");
      process.kill(running.pid, "SIGKILL");
      // HAProxy's worker serves requests until it notices that its main process has ended.
      const ended = [running.pid, serving];
      await eventually(() => !listProcesses().some((each) => ended.includes(each.pid)), "the edge has ended");
      await eventually(
        async () => (await ask(platform.entrance, "survivor", "/")).status === 200,
        "the application answers",
      );
      await assertConsistent();
    });

    // In a container, only the application's own processes run.
    for (const victim of [...(way.runtime === "process" ? ["shim.sh"] : []), "node server.js"]) {
      test(`an application whose ${victim} is killed is started again, with a note`, async () => {
        const found = listProcesses().filter((each) => each.commandLine.includes(marker) || isShim(each.commandLine));
        const { pid } = found.find((each) => each.commandLine.includes(victim)) ?? {};
        assert.ok(pid, `${victim} was found`);
        const before = await crashesTold();
        process.kill(pid, "SIGKILL");
        await eventually(async () => (await crashesTold()) > before, "the timeline notes the crash");
        await assertConsistent();
        await assertNothingElseRuns();
      });
    }

    test("Ctrl-C in the middle of a push refuses it with a sentence, and all applications come back", async () => {
      await app.commit(appWith({ buildMs: 5000 }));
      await remember();
      let ending: Promise<void> | undefined;
      const pushed = await app.push("main", (chunk) => {
        if (chunk.includes("building now")) ending ??= platform.end("SIGINT");
      });
      await ending;
      assert.notEqual(pushed.exitCode, 0);
      assert.match(pushed.stderr, /remote:  !     .*(restart|stopp|ending)/i);
      assert.deepEqual(ownProcesses(), []);
      await platform.restart();
      await settle();
      await assertConsistent();
      assert.doesNotMatch(platform.output(), /crashed/, "an orderly end is no crash");
      await assertNextPushWorks();
    });
  },
  random,
);

function appWith(traits: Partial<AppTraits>): Record<string, string> {
  version += 1;
  return liveApp({ version: `version ${version}`, marker, ...traits });
}

async function remember(): Promise<void> {
  texts.set(await app.head(), `version ${version}`);
}

async function pushAndKill({ line, afterMs: [from, to] }: Instant) {
  let dead: Promise<void> | undefined;
  const kill = () => (dead ??= sleep(from + random() * (to - from)).then(() => platform.end("SIGKILL")));
  if (line === "") void kill();
  const pushed = await app.push("main", (chunk) => void (line !== "" && chunk.includes(line) && kill()));
  // If the push ended before the kill, kill the control plane now.
  await kill();
  return pushed;
}

interface Deployment {
  readonly id: string;
  readonly number: number;
  readonly status: string;
  readonly commit: string;
}

async function deployments(): Promise<Deployment[]> {
  return (await platform.call<{ deployments: Deployment[] }>("GET", "/v1/projects/survivor/deployments")).body
    .deployments;
}

async function activeDeployment(): Promise<Deployment> {
  const active = (await deployments()).filter((each) => each.status === "active");
  assert.equal(active.length, 1, `exactly one is active: ${JSON.stringify(active)}`);
  return active[0] as Deployment;
}

/** Waits until every build and deployment has a final status. */
async function settle(): Promise<void> {
  await eventually(async () => {
    const { builds } = (await platform.call<{ builds: { status: string }[] }>("GET", "/v1/projects/survivor/builds"))
      .body;
    const states = [...builds, ...(await deployments())].map((each) => each.status);
    return !states.some((state) => ["queued", "running", "pending", "starting"].includes(state));
  }, "no build or deployment is on its way");
}

/** Checks that API, edge and git agree on the active deployment. */
async function assertConsistent(): Promise<Deployment> {
  const active = await activeDeployment();
  await eventually(
    async () => (await ask(platform.entrance, "survivor", "/")).status === 200,
    "the application answers",
  );
  const answer = await ask(platform.entrance, "survivor", "/");
  assert.deepEqual(
    [answer.status, answer.body],
    [200, texts.get(active.commit)],
    "the edge serves the active deployment",
  );
  await eventually(async () => (await app.remoteHead()) === active.commit, "the branch points at what serves");
  return active;
}

async function assertNextPushWorks(): Promise<void> {
  await app.commit(appWith({}));
  await remember();
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.equal((await ask(platform.entrance, "survivor", "/")).body, `version ${version}`);
}

/** Checks that only the replica of the active deployment still runs. */
async function assertNothingElseRuns(): Promise<void> {
  const active = await activeDeployment();
  await eventually(
    async () => (await platform.liveWorkloads()).join() === active.id,
    "only the active deployment is left",
  );
  const alive = () => listProcesses().filter((each) => each.commandLine.includes(marker));
  await eventually(
    () => alive().every((each) => /^\S*(node|sh|bwrap|docker-init) /.test(each.commandLine)) && replicas() === 1,
    "one process of the application is left",
  );
  assert.deepEqual(
    alive().filter((each) => each.commandLine.includes("wait.js")),
    [],
    "no build or release command is left",
  );
}

const replicas = () =>
  listProcesses().filter((each) => /^\S*node server\.js/.test(each.commandLine) && each.commandLine.includes(marker))
    .length;
async function crashesTold(): Promise<number> {
  // The crashes of one deployment are one entry.
  const { body } = await platform.call<{ timeline: { action: string; detail: { crashes?: number } }[] }>(
    "GET",
    "/v1/projects/survivor/timeline",
  );
  const crashed = body.timeline.filter(({ action }) => action === "replica.crashed");
  return crashed.reduce((sum, { detail }) => sum + (detail.crashes ?? 1), 0);
}

const isShim = (commandLine: string) => commandLine.includes("shim.sh") && commandLine.includes(platform.dataDir);
const ownProcesses = () =>
  listProcesses().filter((each) => each.commandLine.includes(platform.dataDir) || each.commandLine.includes(marker));
