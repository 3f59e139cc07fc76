import assert from "node:assert/strict";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { runsAll } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";

// Drawn with other journey files: it starts a whole platform, which takes too long for every run.

let platform: TestPlatform;
let app: TestApp;
const remote = () => `${platform.api}/git/main/agreed.git`;

before(async () => {
  platform = await startPlatform();
  app = await createApp(platform, "agreed", { "index.html": "start" });
  for (const text of ["one", "two", "three"]) await app.commit({ "index.html": text });
  await app.git("config", "uploadpack.allowFilter", "true");
});
after(() => platform.destroy());

const kinds = ["whole", "shallow", "partial", "grafted", "rewritten"] as const;

/** Clones the work tree in a way that may lack history or objects, commits a change there, and pushes it. */
async function pushFrom(kind: (typeof kinds)[number], text: string, depth: number) {
  const folder = join(app.dir, ".clone");
  await rm(folder, { recursive: true, force: true });
  const options = { shallow: ["--depth", `${depth}`], partial: ["--filter=blob:none"] } as const;
  const how = kind === "shallow" || kind === "partial" ? options[kind] : [];
  assert.equal((await app.git("clone", "-q", ...how, `file://${app.dir}`, folder)).exitCode, 0);
  const git = (...args: string[]) =>
    app.git("-C", folder, "-c", "user.name=T", "-c", "user.email=t@localhost", ...args);
  if (kind === "rewritten") await git("reset", "-q", "--hard", "HEAD~1");
  if (kind === "grafted") {
    await mkdir(join(folder, ".git/info"), { recursive: true });
    await writeFile(join(folder, ".git/info/grafts"), `${(await git("rev-parse", `HEAD~${depth - 1}`)).stdout}`);
  }
  await writeFile(join(folder, "index.html"), text);
  await git("commit", "-q", "-a", "-m", text);
  const commit = (await git("rev-parse", "HEAD")).stdout.trim();
  const pushed = await git("push", remote(), "+HEAD:refs/heads/main");
  // The next clones begin at what is live.
  if (pushed.exitCode === 0)
    await app.git("pull", "-q", "--rebase=false", "--no-edit", "-X", "theirs", remote(), "main");
  return { ...pushed, commit };
}

/** Returns what the branch, the newest rows, the application and a fresh clone say. */
async function observe() {
  type Row = { status: string; commit: string };
  const { body } = await platform.call<{ deployments: Row[] }>("GET", "/v1/projects/agreed/deployments");
  const fresh = join(app.dir, ".fresh");
  await rm(fresh, { recursive: true, force: true });
  const cloned = await app.git("clone", "-q", remote(), fresh);
  assert.equal(cloned.exitCode, 0, cloned.stderr);
  const checked = await app.git("-C", fresh, "fsck", "--full", "--no-dangling");
  assert.equal(checked.exitCode, 0, checked.stderr);
  return {
    branch: await app.remoteHead(),
    row: body.deployments.find(({ status }) => status === "active")?.commit ?? "",
    clone: (await app.git("-C", fresh, "rev-parse", "-q", "--verify", "HEAD")).stdout.trim(),
    served: (await platform.visit("agreed")).body,
    text: await readFile(join(fresh, "index.html"), "utf8").catch(() => ""),
  };
}

test("branch, rows, the served version and a fresh clone agree after every push, whether git and Berth accept or refuse it", async () => {
  const random = seededRandom();
  const pushes = runsAll ? 200 : 12;
  const seen = new Map<string, number>();
  let live = "";
  for (let index = 0; index < pushes; index += 1) {
    // The first push comes from a clone without history, when the project has nothing yet.
    const kind = index === 0 ? "shallow" : (kinds[Math.floor(random() * kinds.length)] as (typeof kinds)[number]);
    const depth = 1 + Math.floor(random() * 3);
    const text = `version ${index}`;
    // A commit that the project does not have: a clone that ends at it cannot be pushed.
    if (index === 3 || random() < 0.5) await app.commit({ "other.txt": text });
    const pushed = await pushFrom(kind, text, depth);
    const isAccepted = pushed.exitCode === 0;
    const said = `${kind} push ${index}, depth ${depth}: ${pushed.stderr}`;
    seen.set(`${kind} ${isAccepted}`, (seen.get(`${kind} ${isAccepted}`) ?? 0) + 1);
    if (isAccepted) live = pushed.commit;
    else assert.match(pushed.stderr, /git fetch --unshallow|lacks objects that its commits need/, said);
    if (index === 0 || kind === "whole") assert.equal(isAccepted, index > 0, said);
    if (live === "") {
      assert.equal(await app.remoteHead(), "", said);
      await app.push();
      live = await app.head();
    }
    const found = await eventually(async () => {
      const each = await observe();
      return each.served === each.text ? each : undefined;
    }, `what serves is in the clone; ${said}`);
    assert.deepEqual([found.branch, found.row, found.clone], [live, live, live], said);
    if (isAccepted) assert.equal(found.text, text, said);
  }
  process.stdout.write(`${pushes} pushes: ${JSON.stringify(Object.fromEntries(seen))}\n`);
});
