import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { run, systemPath } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import { drawCases, runsAll } from "../support/draw-cases.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "../e2e/platform.ts";
import { djangoApp } from "./django-app.ts";
import { workerApp } from "./worker-app.ts";
import { guardMs } from "../support/eventually.ts";
import { withoutPypi } from "../support/without-pypi.ts";

// Drawn with other journey files: it starts whole platforms, which takes too long for every run.

/** An application that a framework's scaffolder generates, with texts that tell its versions apart. */
interface Scaffold {
  readonly slug: string;
  /** The scaffolder and its arguments; the test appends the target folder. */
  readonly command?: readonly [string, ...string[]];
  /** Instead of a scaffolder: the files of the framework's quickstart. */
  readonly files?: Record<string, string>;
  readonly path?: string;
  /** `before` is in `file` and in the response; the second version replaces it with `after`. */
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

const scaffolds: readonly Scaffold[] = [
  {
    slug: "express",
    command: ["express-generator@4.16.1", "--view=pug"],
    ...{ file: "routes/index.js", before: "Express", after: "Departure" },
  },
  {
    slug: "fastify",
    command: ["fastify-cli@8.0.2", "generate"],
    ...{ path: "/example", file: "routes/example/index.js", before: "this is an example", after: "another example" },
  },
  {
    slug: "vite",
    command: ["create-vite@9.3.0", "--template", "react-ts", "--no-interactive"],
    // No file has this path, so the page of the client-side router answers.
    ...{ path: "/some/route", file: "index.html", before: "<title>vite</title>", after: "<title>other</title>" },
  },
];

const flask: Scaffold = {
  slug: "flask",
  files: {
    "requirements.txt": "flask==3.1.2\ngunicorn==23.0.0\n",
    "app.py": `from flask import Flask\n\napp = Flask(__name__)\n\n\n@app.route("/")\ndef hello_world():\n    return "<p>Hello, Platform!</p>"\n`,
  },
  ...{ file: "app.py", before: "Hello, Platform!", after: "Hello, again!" },
};

/** An application with a job queue; see `workerApp`. */
interface Queue {
  readonly slug: string;
  readonly name: string;
  readonly files: Readonly<Record<string, string>>;
  readonly isPython: boolean;
  readonly hasScheduler: boolean;
}

const queues: readonly Queue[] = [
  { slug: "queue", name: "pg-boss", files: workerApp, isPython: false, hasScheduler: false },
  { slug: "letters", name: "Django with procrastinate", files: djangoApp, isPython: true, hasScheduler: true },
];

const toolEnv = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(?:npm_(?!config_)|NODE_TEST)/.test(name)),
) as Record<string, string>;
const npmEnv = { ...toolEnv, PATH: `${dirname(process.execPath)}:${toolEnv["PATH"] ?? systemPath}`, CI: "1" };
const npmAnswers =
  (
    await run(
      { file: "npm", args: ["view", "create-vite@9.3.0", "version"] },
      { env: npmEnv, timeoutMs: guardMs },
    ).catch(() => null)
  )?.exitCode === 0;
const withoutNpm = npmAnswers ? null : "SKIPPED: the npm registry cannot be reached";

describe("applications that their frameworks' scaffolders generate", { concurrency: 2 }, () => {
  let platform: TestPlatform;
  const made: TestApp[] = [];

  before(async () => {
    platform = await startPlatform();
  });
  after(async () => {
    await platform?.destroy();
    for (const { dir } of made) rmSync(dir, { recursive: true, force: true });
  });

  const drawn = drawCases([...scaffolds, flask, ...queues] as const, 1);
  const deploys = runsAll ? 20 : 2;
  for (const queue of queues) {
    const { slug, name, files, isPython, hasScheduler } = queue;
    const ifDrawn = { skip: drawn.includes(queue) ? false : "drawn by other runs" };
    it(`${name}: ${deploys} deploys lose no acknowledged job and run none twice`, ifDrawn, async (t) => {
      const reason = isPython ? await withoutPypi() : withoutNpm;
      if (reason !== null) return t.skip(reason);
      const app = await createApp(platform, slug, files);
      made.push(app);
      await platform.call("POST", `/v1/projects/${slug}/database`);
      if (isPython) await platform.call("PUT", `/v1/projects/${slug}/env/SECRET_KEY`, { value: "of a test" });
      else await lockPackages(app);
      await app.commit({});
      await push(app);
      const jobs = sendJobs(platform, slug);
      let sent: Awaited<ReturnType<typeof jobs.stop>>;
      try {
        for (let number = 1; number <= deploys; number += 1) {
          await app.commit({ "version.txt": `${number}` });
          await push(app);
        }
      } finally {
        sent = await jobs.stop();
      }
      assert.deepEqual(sent.failures, []);
      let seen = await worked(platform, slug);
      const isDone = async () => {
        seen = await worked(platform, slug);
        return (seen.done.length >= sent.acknowledged.length && (!hasScheduler || seen.schedulers > 1)) || undefined;
      };
      await until(isDone, { timeoutMs: guardMs });
      const done = new Set(seen.done.map(({ job }) => job));
      t.diagnostic(`${sent.acknowledged.length} jobs, done by ${seen.workers} deployments`);
      assert.deepEqual(
        sent.acknowledged.filter((job) => !done.has(job)),
        [],
        "lost",
      );
      assert.deepEqual(
        seen.done.filter(({ times }) => times > 1),
        [],
        "done twice",
      );
      assert.equal(seen.overlaps, 0, "two versions of the worker or the scheduler ran at the same time");
      if (hasScheduler) assert.ok(seen.schedulers > 1, "fewer than two deployments' schedulers had jobs done");
    });
  }

  for (const scaffold of drawn.filter((each) => "file" in each)) {
    const isPython = scaffold === flask;
    it(`${scaffold.slug} (${scaffold.command?.[0] ?? "its quickstart, from PyPI"})`, async (t) => {
      const reason = isPython ? await withoutPypi() : withoutNpm;
      return reason === null ? live(platform, scaffold, made) : t.skip(reason);
    });
  }
});

async function lockPackages({ dir }: TestApp): Promise<void> {
  const args = ["install", "--package-lock-only", "--no-audit", "--no-fund"];
  const lock = await run({ file: "npm", args }, { cwd: dir, env: npmEnv, timeoutMs: guardMs });
  assert.equal(lock.exitCode, 0, lock.stderr);
}

/** Sends jobs until it is stopped; returns the acknowledged jobs and all other responses. */
function sendJobs(platform: TestPlatform, slug: string) {
  const acknowledged: string[] = [];
  const failures: string[] = [];
  let isOver = false;
  const sending = (async () => {
    while (!isOver) {
      const { status, body } = await post(platform, `${slug}.localhost`, "/jobs");
      if (status === 200) acknowledged.push((JSON.parse(body) as { job: string }).job);
      else failures.push(`${status} ${body}`);
      await pause(50);
    }
  })();
  return {
    stop: async () => {
      isOver = true;
      await sending;
      return { acknowledged, failures };
    },
  };
}

/** Posts a request and never rejects; after an error the status is 0 and the body is the error message. */
function post({ edgePort: port }: TestPlatform, host: string, path: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve) => {
    const asked = request(
      { host: "127.0.0.1", port, path, method: "POST", headers: { host }, agent: false },
      (response) =>
        text(response).then(
          (body) => resolve({ status: response.statusCode ?? 0, body }),
          (error: Error) => resolve({ status: 0, body: error.message }),
        ),
    );
    asked.on("error", (error) => resolve({ status: 0, body: error.message })).end();
  });
}

interface Worked {
  readonly done: readonly { readonly job: string; readonly times: number }[];
  readonly workers: number;
  readonly overlaps: number;
  /** Number of deployments whose scheduler's jobs were done, in applications with a scheduler. */
  readonly schedulers: number;
}

async function worked(platform: TestPlatform, slug: string): Promise<Worked> {
  const { status, body } = await platform.visit(slug, "/done");
  assert.equal(status, 200, body);
  return JSON.parse(body) as Worked;
}

/** Deploys an application, changes it, rolls it back, and sets a variable, which restarts it. */
async function live(platform: TestPlatform, scaffold: Scaffold, made: TestApp[]): Promise<void> {
  const app = await createApp(platform, scaffold.slug, scaffold.files ?? {});
  made.push(app);
  if (scaffold.command !== undefined) await makeInto(app.dir, scaffold.slug, scaffold.command);
  await app.commit({ ".gitignore": "node_modules\n" });
  await push(app);
  await shows(platform, scaffold, scaffold.before);

  const source = readFileSync(join(app.dir, scaffold.file), "utf8");
  assert.ok(source.includes(scaffold.before), source);
  await app.commit({ [scaffold.file]: source.replace(scaffold.before, scaffold.after) });
  await push(app);
  await shows(platform, scaffold, scaffold.after);

  const back = await platform.call("POST", `/v1/projects/${scaffold.slug}/rollback`);
  assert.equal(back.status, 200, JSON.stringify(back.body));
  await shows(platform, scaffold, scaffold.before);

  await platform.call("PUT", `/v1/projects/${scaffold.slug}/env/GREETING`, { value: "ahoy" });
  assert.ok(
    await until(() => isRestarted(platform, scaffold.slug), { timeoutMs: guardMs }),
    "the application was not restarted after a variable changed",
  );
  await shows(platform, scaffold, scaffold.before);
}

/** Scaffolders require a target folder that does not exist, so generate elsewhere and copy. */
async function makeInto(dir: string, name: string, [program, ...args]: readonly [string, ...string[]]): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), "berth-scaffold-"));
  try {
    const command = { file: "npx", args: ["--yes", program, ...args, name] };
    const result = await run(command, { cwd: place, env: npmEnv, timeoutMs: guardMs });
    assert.equal(result.exitCode, 0, `${result.stdout}\n${result.stderr}`);
    cpSync(join(place, name), dir, { recursive: true });
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

async function push(app: TestApp): Promise<void> {
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
}

async function shows(platform: TestPlatform, { slug, path = "/" }: Scaffold, text: string): Promise<void> {
  const { status, body } = await platform.visit(slug, path, { accept: "text/html" });
  assert.equal(status, 200, body);
  assert.ok(body.includes(text), body);
}

async function isRestarted(platform: TestPlatform, slug: string): Promise<true | undefined> {
  const { body } = await platform.call<{ deployments: { status: string; trigger: string }[] }>(
    "GET",
    `/v1/projects/${slug}/deployments`,
  );
  return body.deployments.some(({ status, trigger }) => status === "active" && trigger === "variables") || undefined;
}
