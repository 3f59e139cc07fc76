import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { after, before, test } from "node:test";

import { run } from "../../src/kit/exec.ts";
import { reaches } from "./changed-files.ts";
import { drawFiles } from "./draw-files.ts";
import measuredFiles from "./measured-files.json" with { type: "json" };
import { processorSecondsOf, secondsOf } from "./measured-files.ts";
import { capacity, planJobs, type Job } from "./plan-jobs.ts";
import { reachableModules } from "./reachable-modules.ts";
import { runJob } from "./run-job.ts";
import { runJobs } from "./run-jobs.ts";
import { shownFolders } from "./shown-folders.ts";
import { findTestFiles, type TestFile } from "./test-files.ts";

const main = resolve(import.meta.dirname, "main.ts");
const head = 'import { after, test } from "node:test";\n';

/** Files of a small checkout. */
const planted = {
  "src/one/pure.test.ts": `import { test } from "node:test"; test("one", () => console.log("process", process.pid));`,
  "src/one/other.test.ts": `import { test } from "node:test"; test("two", () => console.log("process", process.pid));`,
  "src/one/server.test.ts": `${head}import "node:http"; test("three", () => console.log("process", process.pid));`,
  "src/bad/fails.test.ts": `${head}test("good", () => {}); test("bad", () => { throw new Error("no: berth_o_sEcReT"); });`,
  "src/bad/hook.test.ts": `${head}after(() => { throw new Error("no"); }); test("good", () => {});`,
  "src/bad/missing.test.ts": `import "./nowhere.ts";`,
  "src/http/hooked.test.ts": `${head}import "node:http"; after(() => { throw new Error("no"); }); test("one", () => {});`,
  "src/http/lost.test.ts": `import "node:http"; import "./nowhere.ts";`,
  "src/http/other.test.ts": `${head}import "node:http"; after(() => {}); test("two", () => {}); test("three", () => {});`,
  "src/skip/skips.test.ts": `${head}test("runs", () => {}); test("elsewhere", { skip: "no such machine" }, () => {});`,
  "src/skip/suite.test.ts": `import { describe, test } from "node:test"; describe("on it", { skip: "no such program" }, () => { test("starts", () => {}); });
describe("here", () => { test("runs, too", () => {}); });`,
};

let checkout = "";

before(async () => {
  checkout = await mkdtemp(join(tmpdir(), "berth-runner-"));
  for (const [file, text] of Object.entries(planted)) {
    await mkdir(join(checkout, file, ".."), { recursive: true });
    await writeFile(join(checkout, file), text);
  }
});
after(() => rm(checkout, { recursive: true }));

const runTests = (...args: string[]) => run({ file: process.execPath, args: [main, ...args] }, { cwd: checkout });

test("files that share nothing with the outside run in one process, others in one each", async () => {
  const { exitCode, stdout } = await runTests("src/one/");
  assert.equal(exitCode, 0, stdout);
  const pids = [...stdout.matchAll(/process (\d+)/g)].map((match) => match[1]);
  assert.equal(pids.length, 3);
  assert.equal(new Set(pids).size, 2);
  assert.match(stdout, /^3 passed, 0 failed, 0 skipped$/m);
});

test("a failed test, a failed hook and a file that cannot be loaded are red and named", async () => {
  const { exitCode, stdout } = await runTests("src/bad/");
  assert.equal(exitCode, 1);
  const summary = stdout.slice(stdout.indexOf("FAILED:\n"));
  assert.match(summary, /^ {2}- src\/bad\/fails\.test\.ts: bad$/m);
  assert.match(summary, /^ {2}- .*src\/bad\/hook\.test\.ts$/m);
  assert.match(summary, /^ {2}- src\/bad\/missing\.test\.ts$/m);
  assert.match(stdout, /^2 passed, 3 failed, 0 skipped$/m);
});

test("of files in one process, a failed hook or one that cannot be loaded is red, and the others run", async () => {
  const { exitCode, stdout } = await runTests("src/http/");
  assert.equal(exitCode, 1);
  assert.match(stdout, /^RED 3 src\/http files in one process/m);
  assert.match(stdout, /^ {2}- src\/http\/hooked\.test\.ts\n {4}no$/m);
  assert.match(stdout, /^ {2}- src\/http\/lost\.test\.ts\n {4}Cannot find module/m);
  assert.match(stdout, /^3 passed, 2 failed, 0 skipped$/m);
});

test("the end of the output says of each failure why and where, without secrets", async () => {
  const { stdout } = await runTests("src/bad/");
  const summary = stdout.slice(stdout.indexOf("FAILED:\n"));
  assert.match(summary, /fails\.test\.ts: bad\n {4}no: berth_o_\[redacted\]\n {4}at src\/bad\/fails\.test\.ts:2\n/);
  assert.match(summary, /Cannot find module .*nowhere\.ts/);
  assert.doesNotMatch(summary, /sEcReT/);
  assert.ok(summary.split("\n").length < 80, summary);
});

test("what is skipped, a test or a whole suite, is named with its reason", async () => {
  const { exitCode, stdout } = await runTests("src/skip/");
  assert.equal(exitCode, 0);
  const summary = stdout.slice(stdout.indexOf("SKIPPED: 2 tests or suites did NOT run here:\n"));
  assert.match(summary, /^ {2}- src\/skip\/skips\.test\.ts: elsewhere \(no such machine\)$/m);
  assert.match(summary, /^ {2}- src\/skip\/suite\.test\.ts: on it \(no such program\)$/m);
  assert.match(stdout, /^2 passed, 0 failed, 2 skipped$/m);
});

test("an argument that no file matches is red", async () => {
  assert.equal((await runTests("src/nothing/")).exitCode, 1);
});

test("a process that does not end is killed and red, although its tests passed", async () => {
  const file = join(checkout, "hangs.test.ts");
  await writeFile(
    file,
    `import { spawn } from "node:child_process"; ${head}test("good", () => { spawn("sleep", ["99"]); });`,
  );
  const limits = { testSeconds: 60, fileSeconds: 1 };
  const job = { name: "hangs", args: [file], isTest: true, weight: 1, limits };
  const result = await runJob(job, { slowness: () => 1 });
  assert.equal(result.isGreen, false);
  assert.deepEqual(
    result.failed.map(({ name }) => name),
    ["hangs"],
  );
  assert.match(
    result.failed[0]?.error ?? "",
    /^Killed: the file took longer than 1 s in total; .*\nIts children:\n  \d+ sleep 99$/,
  );
  const hook = { ...job, limits: { testSeconds: 1, fileSeconds: 60 } };
  const { failed } = await runJob(hook, { slowness: () => 1 });
  assert.match(
    failed[0]?.error ?? "",
    /^Killed: a hook, or the end of the file, after "[^"]*good", took longer than 1 s\./,
  );
});

test("a test that hangs is killed after the time for one test and named, and what failed before it is named, too", async () => {
  const file = join(checkout, "stuck.test.ts");
  const stuck = `test("stuck", () => new Promise(() => { setInterval(() => {}, 1000); }));`;
  await writeFile(file, `${head}test("good", () => {}); test("bad", () => { throw new Error("no"); }); ${stuck}`);
  const job = { name: "hangs", args: [file], isTest: true, weight: 1, limits: { testSeconds: 1, fileSeconds: 60 } };
  const result = await runJob(job, { slowness: () => 2 });
  assert.deepEqual(
    result.failed.map(({ error }) => error.split("\n")[0]),
    ["no", `Killed: the test "${relative(process.cwd(), file)}: stuck" took longer than 2 s.`],
  );
});

test("no more runs at once than the capacity allows, and a file that must run alone does", async () => {
  const files = ["alone", "platform", "beside", "beside", "beside", "platform", "beside", "beside"] as const;
  const jobs = planJobs(
    files.map((kind, index): TestFile => ({ file: `${kind}-${index}`, kind, group: "", row: "", lines: 1 })),
  );
  let held = 0;
  let most = 0;
  const runOne = async ({ name, weight }: Job) => {
    held += weight;
    most = Math.max(most, held);
    if (name.startsWith("alone")) assert.equal(held, weight);
    await new Promise((done) => setTimeout(done, 5));
    held -= weight;
  };
  await runJobs(jobs, capacity, runOne);
  assert.equal(most, capacity);
});

test("the longest job starts first, and each that was measured is there", () => {
  const found = findTestFiles([]);
  const known = new Set(found.flatMap(({ file, group }) => [file, group]));
  assert.deepEqual(
    Object.keys(measuredFiles).filter((name) => !known.has(name)),
    [],
  );
  const beside = found.filter(({ kind }) => kind !== "alone");
  const longest = beside.reduce((one, other) => (secondsOf(other) > secondsOf(one) ? other : one));
  assert.equal(planJobs(found)[0]?.name, longest.file);
});

test("a file that starts whole platforms is drawn unless it declares that every run needs it", () => {
  const found = findTestFiles([]).filter(({ kind }) => kind === "platform");
  const everyRun = found.filter(({ row }) => row === "").map(({ file }) => file);
  assert.deepEqual(everyRun, [
    "src/adapters/edge-haproxy/ordinary-user.test.ts",
    "test/conformance/conformance.test.ts",
  ]);
});

test("each draw has the files that are never drawn and one share of the others, and over many runs every file runs", () => {
  const found = findTestFiles([]);
  const seen = new Set<TestFile>();
  const costs: number[] = [];
  // There are some 25 shares: a thousand draws miss one with a probability below 1e-15.
  for (let run = 0; run < 1000; run += 1) {
    const { files, others } = drawFiles(found, Math.random);
    assert.equal(files.length + others.length, found.length);
    assert.ok(others.every(({ row }) => row !== ""));
    const drawn = files.filter(({ row }) => row !== "");
    // A file that takes longer than a share is one alone.
    if (drawn.length > 1) costs.push(drawn.reduce((sum, file) => sum + processorSecondsOf(file), 0));
    for (const file of files) seen.add(file);
  }
  assert.equal(seen.size, found.length);
  assert.ok(Math.max(...costs) < 1.3 * Math.min(...costs), `the shares take ${[...new Set(costs)].join(", ")} s`);
});

test("several shares are that many times the files of one, and more than there are is every file", () => {
  const found = findTestFiles([]);
  const drawn = (count: number) => drawFiles(found, Math.random, count).files.filter(({ row }) => row !== "");
  const seconds = (files: readonly TestFile[]) => files.reduce((sum, file) => sum + processorSecondsOf(file), 0);
  assert.equal(drawFiles(found, Math.random, Infinity).others.length, 0);
  const one = Array.from({ length: 100 }, () => seconds(drawn(1)));
  const eight = seconds(drawn(8));
  // The 0.8 is for shares that a hundred draws missed.
  assert.ok(
    eight > 8 * 0.8 * Math.min(...one) && eight < seconds(drawn(Infinity)),
    `${eight} s, one share: ${one.join()}`,
  );
});

test("a run contains every drawn file that tests what was changed, by its imports or by the table of folders", () => {
  const found = findTestFiles([]);
  const reached = (...changed: string[]) =>
    drawFiles(found, Math.random, 1, (file) => reaches(new Set(changed), file)).reached.map(({ file }) => file);
  assert.ok(reached("src/reconcile/certificates/order.ts").includes("test/certificates.test.ts"));
  assert.ok(reached("src/adapters/runtime-docker/docker-runtime.ts").includes("test/e2e/docker.test.ts"));
  assert.ok(
    reached("src/adapters/builder-docker/docker-builder.ts").includes("src/adapters/builder-docker/registries.test.ts"),
  );
  assert.ok(reached("src/dashboard/app.tsx").every((file) => file.includes("dashboard")));
  assert.deepEqual(reached("test/e2e/cron.test.ts"), ["test/e2e/cron.test.ts"]);
  assert.deepEqual(reached("docs/cron.md"), []);
});

test("the table of folders names existing drawn files and paths, and each folder with rules has a file", () => {
  const found = findTestFiles([]);
  const tracked = globSync([
    "README.md",
    "install.sh",
    "package-lock.json",
    "bin/*",
    "sql/*",
    "examples/**",
    "{src,tools}/**/*.*",
  ]);
  for (const [file, parts] of Object.entries(shownFolders)) {
    assert.ok(
      found.some((each) => each.file === file && each.row !== ""),
      `${file} is not a drawn file`,
    );
    for (const part of parts)
      assert.ok(
        tracked.some((path) => path.includes(part)),
        `no path contains ${part}`,
      );
  }
  const drawn = found.filter(({ row }) => row !== "");
  const wide = drawn.filter(
    ({ file, kind }) => kind === "platform" || reachableModules(file).has("src/http/handlers.ts"),
  );
  assert.deepEqual(
    wide.map(({ file }) => file).filter((file) => !(file in shownFolders)),
    [],
  );
  const folders = new Set(
    tracked.flatMap((path) => /^src\/(?:adapters|features|reconcile)\/[\w-]+\//.exec(path)?.[0] ?? []),
  );
  const isShown = (folder: string) => drawn.some((file) => reaches(new Set([`${folder}x.ts`]), file));
  const imported = new Set(drawn.flatMap(({ file }) => (file in shownFolders ? [] : [...reachableModules(file)])));
  const left = [...folders].filter(
    (folder) => !isShown(folder) && ![...imported].some((module) => module.startsWith(folder)),
  );
  // Only --all runs a swarm.
  assert.deepEqual(left, ["src/adapters/runtime-swarm/"]);
});

test("the same random numbers draw the same files", () => {
  const found = findTestFiles([]);
  const draw = () => drawFiles(found, () => 0.4).files;
  assert.deepEqual(draw(), draw());
});
