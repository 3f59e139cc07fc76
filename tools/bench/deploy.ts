import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { runOk, start, systemPath } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { createApp, nodeApp, startPlatform, type TestApp, type TestPlatform } from "../../test/e2e/platform.ts";
import { inTurns, median, medians, timeRow, type BenchRow, type BenchStep, type Rounds } from "./row.ts";

const warmRounds = 5;
const coldVersions = ["5.0.0", "5.0.1", "5.1.0"];

/**
 * Measures an application from `git push` to the first 200: Berth against the same steps by hand (push to a bare repository, checkout, `npm
 * ci`, `npm run build`, start, first 200). Each has its own npm cache.
 */
export async function measureDeploys(): Promise<BenchRow[]> {
  await using platform = await startPlatform();
  const cold = await measureCold(platform);
  return [cold, await measureSecond(platform), await measureWarm(platform), await measureBare(platform)];
}

async function measureCold(platform: TestPlatform): Promise<BenchRow> {
  // Use new packages in each round, so that nothing of the previous one is cached.
  const apps = await Array.fromAsync(coldVersions, (version, round) => lockedApp(platform, `cold-${round}`, version));
  const rounds = await inTurns(apps.length, {
    theirs: (round) => byHand(apps[round] as TestApp, freshFolder("hand"), `cold-${round}`),
    ours: (round) => pushLive(platform, apps[round] as TestApp, { slug: `cold-${round}`, text: `cold-${round}` }),
  });
  return compared("push to first 200, cold caches", "the same steps by hand", { ...rounds, goal: 1.15 });
}

/** Measures a project whose packages another project of the machine has fetched already. The manual deploy uses the first project's npm cache. */
async function measureSecond(platform: TestPlatform): Promise<BenchRow> {
  const hand = freshFolder("hand");
  const apps: TestApp[] = [];
  for (let round = 0; round <= coldVersions.length; round += 1) apps.push(await lockedApp(platform, `second-${round}`));
  const rounds = await inTurns(
    coldVersions.length,
    {
      theirs: (round) => byHand(apps[round] as TestApp, hand, `second-${round}`),
      ours: (round) => pushLive(platform, apps[round] as TestApp, { slug: `second-${round}`, text: `second-${round}` }),
    },
    1,
  );
  const name = "push to first 200, a second project with the same packages";
  return compared(name, "the same steps by hand with npm's cache", { ...rounds, goal: 0.8 });
}

async function measureWarm(platform: TestPlatform): Promise<BenchRow> {
  const app = await lockedApp(platform, "warm");
  const hand = freshFolder("hand");
  const rounds = await inTurns(
    warmRounds,
    {
      async theirs(round) {
        await app.commit({ "text.txt": `warm ${round}` });
        return byHand(app, hand, `warm ${round}`);
      },
      ours: (round) => pushLive(platform, app, { slug: "warm", text: `warm ${round}` }),
    },
    1,
  );
  return compared("push to first 200, only the source changed", "the same steps by hand", { ...rounds, goal: 0.6 });
}

/** Measures an application that needs no install and no build, so only the platform's own time is left. */
async function measureBare(platform: TestPlatform): Promise<BenchRow> {
  const app = await createApp(platform, "bare", nodeApp("bare"));
  await pushLive(platform, app, { slug: "bare", text: "bare" });
  const hand = freshFolder("hand");
  const rounds = await inTurns(warmRounds, {
    async theirs(round) {
      await app.commit(nodeApp(`bare ${round}`));
      return byHand(app, hand, `bare ${round}`, []);
    },
    ours: (round) => pushLive(platform, app, { slug: "bare", text: `bare ${round}` }),
  });
  const name = "redeploy of a Node application without dependencies";
  return compared(name, "git push, checkout and start by hand", { ...rounds, goal: null });
}

/** Returns the medians of all rounds, and how they divide into steps. */
export function compared(
  name: string,
  against: string,
  { goal, ...rounds }: Rounds<StepTimes> & { goal: number | null },
): BenchRow {
  return { ...timeRow(name, against, { ...medians(rounds, total), goal }), steps: stepRows(rounds) };
}

/** Returns the source of a server with usual dependencies and a build step. */
function sourceOf(text: string, express = "^5.0.0"): Record<string, string> {
  const scripts = { build: "node build.js", start: "node server.js" };
  return {
    "package.json": JSON.stringify({ name: "bench", private: true, scripts, dependencies: { express } }),
    "build.js": `require("node:fs").writeFileSync("built.txt", require("node:fs").readFileSync("text.txt"));`,
    "server.js": `const app = require("express")();\napp.get("/", (request, response) => response.send(require("node:fs").readFileSync("built.txt", "utf8")));\napp.listen(process.env.PORT);\n`,
    "text.txt": text,
    ".gitignore": "node_modules\nbuilt.txt\n",
  };
}

/** Creates an application whose lock file is committed. */
export async function lockedApp(
  platform: TestPlatform,
  slug: string,
  express?: string,
  more: Record<string, string> = {},
): Promise<TestApp> {
  const app = await createApp(platform, slug, { ...sourceOf(slug, express), ...more });
  await runOk(
    { file: process.execPath, args: [npm(), "install", "--package-lock-only", "--no-audit", "--no-fund"] },
    { cwd: app.dir, env: environment() },
  );
  await app.commit({});
  return app;
}

export async function pushLive(
  platform: TestPlatform,
  app: TestApp,
  expected: { slug: string; text: string },
  branch = "main",
): Promise<StepTimes> {
  const clock = stepClock();
  const pushed = await app.push(branch, clock.hear);
  if (pushed.exitCode !== 0) throw new Error(`the push failed:\n${pushed.stderr}`);
  const seen = await until(
    async () => ((await platform.visit(expected.slug)).body === expected.text ? true : undefined),
    { timeoutMs: 10_000 },
  );
  if (seen === undefined) throw new Error("the new version was not served");
  clock.end("first answer");
  return clock.times();
}

const installAndBuild: readonly (readonly string[])[] = [
  ["ci", "--loglevel=error"],
  ["run", "--silent", "build"],
];

export async function byHand(app: TestApp, dir: string, text: string, npmSteps = installAndBuild): Promise<StepTimes> {
  const env = {
    ...environment(),
    npm_config_cache: join(dir, "npm-cache"),
    npm_config_audit: "false",
    npm_config_fund: "false",
  };
  const clock = stepClock();
  const step = (file: string, args: string[], cwd: string) => runOk({ file, args }, { cwd, env, timeoutMs: 300_000 });
  await step("git", ["init", "--quiet", "--bare", join(dir, "bare.git")], dir);
  await step("git", ["push", "--quiet", "--force", join(dir, "bare.git"), "HEAD:refs/heads/main"], app.dir);
  await step(
    "git",
    [`--git-dir=${join(dir, "bare.git")}`, `--work-tree=${dir}`, "checkout", "--force", "--quiet", "main"],
    dir,
  );
  clock.end("git, checkout, what it takes");
  for (const words of npmSteps) {
    await step(process.execPath, [npm(), ...words], dir);
    clock.end(words[0] === "ci" ? "installing" : "building");
  }
  const port = 12_000 + Math.floor(Math.random() * 10_000);
  const server = start(
    { file: process.execPath, args: ["server.js"] },
    { cwd: dir, env: { ...env, PORT: String(port) } },
  );
  try {
    await served(`http://127.0.0.1:${port}/`, text);
    clock.end("starting until healthy");
    return clock.times();
  } finally {
    server.kill("SIGKILL");
  }
}

/** Waits until the application that was deployed by hand returns the text. */
export async function served(url: string, text: string): Promise<void> {
  const answer = async () => (await fetch(url).catch(() => undefined))?.text();
  const isServed = async () => ((await answer()) === text ? true : undefined);
  if (!(await until(isServed, { timeoutMs: 20_000 }))) throw new Error("the app by hand did not answer");
}

/** Returns the npm that Berth finds, too; the same Node runs it. */
function npm(): string {
  const folders = [dirname(process.execPath), ...(process.env["PATH"] ?? systemPath).split(":")];
  const found = folders.map((folder) => join(folder, "npm")).find((file) => existsSync(file));
  if (found === undefined) throw new Error("npm was not found");
  return realpathSync(found);
}

export function environment(): Record<string, string> {
  const path = `${dirname(process.execPath)}:${process.env["PATH"] ?? systemPath}`;
  const given = ["HOME", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "npm_config_registry"].flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name] as string] as const],
  );
  return { PATH: path, HOME: tmpdir(), ...Object.fromEntries(given) };
}

export function freshFolder(name: string): string {
  const dir = mkdtempSync(join(tmpdir(), `berth-bench-${name}-`));
  process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

const names = [
  "git, checkout, what it takes",
  "installing",
  "building",
  "publishing",
  "starting until healthy",
  "first answer",
] as const;
type StepName = (typeof names)[number];

/** Milliseconds by step. The manual deploy has no publishing step. */
type StepTimes = Partial<Record<StepName, number>>;

// The line of a push's output at which a step ends.
const ends: readonly (readonly [StepName, RegExp])[] = [
  ["git, checkout, what it takes", /-----> (?:Installing|Using) /],
  ["installing", /-----> Building/],
  ["building", /-----> Starting with/],
  ["publishing", /-----> Starting \d/],
  ["starting until healthy", /-----> Live at/],
];

interface StepClock {
  /** Reads a push's output. */
  hear(chunk: Buffer): void;
  end(name: StepName): void;
  /** Returns the duration of each ended step. */
  times(): StepTimes;
}

function stepClock(): StepClock {
  let last = performance.now();
  let heard = "";
  const times: StepTimes = {};
  const end = (name: StepName) => {
    times[name] = performance.now() - last;
    last = performance.now();
  };
  return {
    hear(chunk) {
      heard += chunk.toString("utf8");
      for (const [name, line] of ends) if (times[name] === undefined && line.test(heard)) end(name);
    },
    end,
    times: () => times,
  };
}

/** Returns the time from the start to the first response. */
export const total = (times: StepTimes): number => Object.values(times).reduce((sum, each) => sum + each, 0);

function stepRows({ ours, theirs }: Rounds<StepTimes>): BenchStep[] {
  const of = (rounds: readonly StepTimes[], name: StepName) => {
    const found = rounds.map((each) => each[name]).filter((time) => time !== undefined);
    return found.length === 0 ? null : median(found);
  };
  return names.map((name) => ({ name, ours: of(ours, name), theirs: of(theirs, name) }));
}
