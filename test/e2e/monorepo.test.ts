import assert from "node:assert/strict";
import { appendFile, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { sshFingerprint } from "../../src/kit/ssh-fingerprint.ts";
import { cliUser } from "../support/cli.ts";
import { eventually } from "../support/eventually.ts";
import { makeRemote, serveSsh, withoutSshd } from "../support/git-remotes.ts";
import { createApp, nodeApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";

// Drawn with other journey files: it starts whole platforms, which takes too long for every run.

let platform: TestPlatform;
let repository: TestApp;

const inFolder = (folder: string, files: Record<string, string>) =>
  Object.fromEntries(Object.entries(files).map(([path, text]) => [`${folder}/${path}`, text]));
const berthFile = (more: object) => JSON.stringify({ start: "node server.js", health_path: "/", ...more });
const bodyOf = async (slug: string) => (await platform.visit(slug)).body;

before(async () => {
  platform = await startPlatform({ BERTH_OUTGOING_NETWORKS: "127.0.0.0/8" });
  repository = await createApp(platform, "back", {
    ...inFolder("apps/back", nodeApp("back one")),
    "apps/back/berth.json": berthFile({ crons: [{ path: "/tick", schedule: "0 4 * * *" }] }),
    ...inFolder("apps/web", nodeApp("web one")),
    "apps/web/berth.json": berthFile({ watch: ["apps/web", "shared"] }),
    "shared/note.txt": "one",
  });
  await platform.call("POST", "/v1/projects", { slug: "web", name: "Web" });
  for (const slug of ["back", "web"])
    await platform.call("PUT", `/v1/projects/${slug}/settings`, { root: `apps/${slug}` });
});
after(() => platform.destroy());

test("two projects deploy two folders of one repository, each with its own berth.json", async () => {
  for (const slug of ["back", "web"]) {
    const pushed = await repository.pushTo(slug);
    assert.equal(pushed.exitCode, 0, pushed.stderr);
    assert.match(pushed.stderr, new RegExp(`Reading apps/${slug}/berth\\.json`));
    assert.equal(await bodyOf(slug), `${slug} one`);
  }
  const { body } = await platform.call<{ jobs: { path: string; schedule: string }[] }>("GET", "/v1/projects/back/cron");
  assert.deepEqual(
    body.jobs.map(({ path, schedule }) => [path, schedule]),
    [["/tick", "0 4 * * *"]],
  );
});

test("a push deploys projects whose watched files changed; for others, it moves the branch and reports it", async () => {
  await repository.commit(inFolder("apps/web", nodeApp("web two")));
  const idle = await repository.pushTo("back");
  assert.equal(idle.exitCode, 0, idle.stderr);
  assert.match(idle.stderr, /Nothing to deploy: no file changed in apps\/back\//);
  assert.equal(await repository.remoteHead(), await repository.head());
  assert.equal((await repository.pushTo("web")).exitCode, 0);
  assert.deepEqual([await bodyOf("back"), await bodyOf("web")], ["back one", "web two"]);
  await repository.commit({ "shared/note.txt": "two" });
  assert.match((await repository.pushTo("web")).stderr, /Live at/);
});

test("the next change deploys after pushes that deployed nothing", async () => {
  await repository.commit(inFolder("apps/back", nodeApp("back two")));
  const pushed = await repository.pushTo("back");
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.equal(await bodyOf("back"), "back two");
});

test("the maintenance page is served as soon as the request returns, while deploys and cron jobs continue", async () => {
  const maintenance = (body: object) => platform.call("PUT", "/v1/projects/back/maintenance", body);
  assert.equal((await maintenance({ on: true, message: "Back soon" })).status, 200);
  const { status, body } = await platform.visit("back");
  assert.deepEqual([status, body.includes("Back soon")], [503, true]);
  await repository.commit(inFolder("apps/back", nodeApp("back three")));
  const pushed = await repository.pushTo("back");
  assert.match(pushed.stderr, /Live at[\s\S]*Visitors get the maintenance page until you run: berth maintenance off/);
  const { body: jobs } = await platform.call<{ jobs: { name: string }[] }>("GET", "/v1/projects/back/cron");
  const name = jobs.jobs[0]?.name;
  const run = await platform.call("POST", `/v1/projects/back/cron/${name}/run`);
  assert.equal(run.status, 201, JSON.stringify(run.body));
  const runs = () =>
    platform.call<{ runs: { http_status: number | null }[] }>("GET", `/v1/projects/back/cron/${name}/runs`);
  assert.equal(
    await eventually(async () => (await runs()).body.runs[0]?.http_status ?? undefined, "the cron run has ended"),
    200,
  );
  assert.equal((await platform.visit("back")).status, 503);
  assert.equal((await maintenance({ on: false })).status, 200);
  assert.equal(await bodyOf("back"), "back three");
});

test(
  "a project follows a branch of a repository over SSH, and only from a host with the key that was set",
  { skip: withoutSshd },
  async () => {
    const remote = await makeRemote();
    const server = await serveSsh(remote, "");
    try {
      await using user = await cliUser({ url: platform.api, token: platform.token });
      const berth = async (...args: string[]) => {
        const { exitCode, stdout, stderr } = await user.berth([...args, "--project", "page"]);
        return { exitCode, said: `${stdout}${stderr}` };
      };
      const json = async <T>(...args: string[]) => JSON.parse((await berth(...args, "--json")).said) as T;
      const pin = sshFingerprint((await readFile(`${server.hostKey}.pub`, "utf8")).split(" ")[1] ?? "");
      const url = server.url.replace("localhost", "127.0.0.1");
      await remote.push("<p>one</p>", { file: "index.html" });
      await platform.call("POST", "/v1/projects", { slug: "page", name: "Page" });

      const other = sshFingerprint("AAAA");
      const made = await json<{ public_key: string }>("follow", url, "--host-key", other);
      await appendFile(join(dirname(server.hostKey), "authorized_keys"), `${made.public_key}\n`);
      const refused = await berth("follow", "--now");
      assert.notEqual(refused.exitCode, 0);
      assert.ok(
        refused.said.includes(`The host presents the key ${pin}, but the project expects ${other}.`),
        refused.said,
      );

      assert.match((await berth("follow", url, "--host-key", pin)).said, /page follows the branch main/);
      const now = await berth("follow", "--now");
      assert.equal(now.exitCode, 0, `${now.said}\n${server.log()}`);
      const shows = (text: string) => async () => (await bodyOf("page")).includes(text) || undefined;
      await eventually(shows("<p>one</p>"), "the first commit is live");
      await remote.push("<p>two</p>", { file: "index.html" });
      // The platform's own round may have fetched the commit a moment before.
      assert.match((await berth("follow", "--now")).said, /build \d+|was already fetched/);
      await eventually(shows("<p>two</p>"), "the second commit is live");
      // The edge serves a new deployment shortly before its status becomes active.
      const isActive = async () => (await berth("follow", "--deliveries")).said.includes("deployment 2 active");
      await eventually(isActive, "the second deployment is active");

      assert.match((await berth("follow", "--status")).said, new RegExp(`Host key +${pin.replaceAll("+", "\\+")}`));
      const listed = await json<{ deliveries: { status: string }[] }>("follow", "--deliveries");
      assert.ok(listed.deliveries.filter(({ status }) => status === "deployed").length >= 2, JSON.stringify(listed));
      assert.equal((await berth("unfollow", "--yes")).exitCode, 0);
      assert.match((await berth("follow", "--status")).said, /does not follow a repository/);
    } finally {
      await server.close();
      await remote.close();
    }
  },
);
