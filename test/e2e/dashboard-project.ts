import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Locator, Route } from "playwright-core";
import type { Result } from "../../src/contract/routes.ts";
import { eventually } from "../support/eventually.ts";
import { author, branch, files, openGate, script, server } from "./dashboard-app.ts";
import { looksRight, screens, showsMarks, tabTo } from "./dashboard-page.ts";
import {
  at,
  choose,
  faults,
  heading,
  openPage,
  page,
  platform,
  press,
  skip,
  takeFromPalette,
} from "./dashboard-stage.ts";
import { createApp, type TestApp } from "./platform.ts";

let app: TestApp;

test("the link in the start banner signs in once and leaves no code in the URL", { skip }, async () => {
  const link = /http\S+\/sign-in#\S+/.exec(platform.output())?.[0] ?? "";
  const { hash } = new URL(link);
  await page.goto(at(`/sign-in${hash}`));
  await heading("Overview").waitFor();
  await page.waitForURL(at("/"));
  await page.reload();
  await heading("Overview").waitFor();
  await faults.during([/^401 \/session$/], async () => {
    await page.goto(at(`/sign-in${hash}`));
    await page.getByText("The link was used or has expired.").waitFor();
  });
  await looksRight(page);
  await page.getByLabel("API token").fill(platform.token);
  await press("Sign in");
  await heading("Overview").waitFor();
});

test(
  "an empty project shows the commands to push, and then each stage of the push until it is live",
  { skip },
  async () => {
    app = await createApp(platform, "demo", files);
    await app.git("config", "user.name", author);
    await app.commit({}, script);
    await platform.call("POST", "/v1/projects/demo/database");
    await page.goto(at("/projects/demo/deployments"));
    await page.getByText("git remote add berth").waitFor();
    assert.equal(await page.getByRole("button", { name: "Deploy again" }).count(), 0);
    await page.goto(at("/projects/demo/logs"));
    await page.getByText("No deployment is live").waitFor();
    await page.getByRole("link", { name: "How to deploy" }).click();
    await page.getByText("git push berth HEAD:main").waitFor();
    for (const line of await page.locator("main ol code").allTextContents()) {
      const [, verb = "", ...rest] = line.split(" ");
      const { exitCode, stderr } = await app.git(verb, ...(verb === "push" ? ["--dry-run"] : []), ...rest);
      assert.equal(exitCode, 0, `${line}: ${stderr}`);
    }
    const pushed = app.push(branch);
    await heading(/^(Build 1|Deployment #1)$/).waitFor();
    await page.getByText("Node.js app detected").waitFor();
    const stages = page.getByRole("list", { name: "Stages" }).getByRole("listitem");
    await stages.filter({ hasText: "Release" }).getByText("under way").waitFor();
    await stages.filter({ hasText: "Health" }).getByText("not yet").waitFor();
    await openGate(platform);
    assert.equal((await pushed).exitCode, 0);
    await heading("Deployment #1").waitFor();
    await page.getByRole("main").getByText("Live", { exact: true }).first().waitFor();
    await stages.filter({ hasText: "Live" }).getByText("done").waitFor();
    await page.getByText(`${branch}@`).first().waitFor();
    await page.getByText(author).waitFor();
    await looksRight(page);
  },
);

test("logs follow the end, and show an application's output as text", { skip }, async () => {
  await page.goto(at("/projects/demo/logs"));
  const log = page.getByRole("log");
  await log.getByText(script).first().waitFor();
  await choose("Time", "1h");
  await page.getByLabel("Search the log").fill("tick");
  await log.locator("mark").first().waitFor();
  await page.waitForURL(/[?&]q=tick/);
  await page.setViewportSize(screens.phone);
  await page.reload();
  await log.locator("mark").first().waitFor();
  await page.getByRole("button", { name: "Wrap long lines", pressed: true }).click();
  await page.setViewportSize(screens.usual);
  await looksRight(page);
  await page.getByLabel("Search the log").fill("");
  await log.locator("mark").first().waitFor({ state: "detached" });
  await choose("Time", "");
  await log.getByText(script).first().waitFor();
  await press("Pause");
  await page.getByRole("button", { name: "Follow the end" }).waitFor();
  await log.press("Home");
  // The log page loads the newest thousand lines first.
  const older = page.getByRole("button", { name: "Show older lines" });
  await older.click();
  await older.waitFor({ state: "detached" });
  await log.press("Home");
  await log.getByText(/early 0$/).waitFor();
});

test("a log that is paused before its first lines arrive offers the older lines", { skip }, async () => {
  const [first, later] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let asked = 0;
  // Respond to the first request with one page instead of a stream, and hold back the second. The application keeps printing, so a stream
  // would show new lines.
  await page.route(/\/v1\/projects\/demo\/logs\?.*process=web/, async (route) => {
    asked += 1;
    if (asked > 1) return later.promise.then(() => route.continue());
    await first.promise;
    const url = route.request().url().replace("follow=true", "follow=false");
    return route.fulfill({ response: await route.fetch({ url }) });
  });
  await choose("Process", "web");
  await press("Pause");
  await page.getByRole("button", { name: "Follow the end" }).waitFor();
  first.resolve();
  await page.getByRole("button", { name: "Show older lines" }).waitFor();
  const newLines = page.getByRole("button", { name: /new line/ });
  assert.equal(await newLines.count(), 0);
  later.resolve();
  await newLines.waitFor();
  await page.unrouteAll({ behavior: "wait" });
});

test("a command runs once, and the page follows its output as text", { skip }, async () => {
  await page.goto(at("/projects/demo/processes"));
  await page.getByRole("cell", { name: /web · replica 0/ }).waitFor();
  await press("Run a command");
  await page.getByRole("textbox", { name: "Command" }).fill(`echo "${script.replaceAll('"', '\\"')}"; exit 7`);
  await press("Run");
  await heading("Command 1").waitFor();
  await page.getByRole("log").getByText(script, { exact: true }).waitFor();
  await page.getByRole("status").getByText("Failed").first().waitFor();
  await page.getByText("7", { exact: true }).waitFor();
  await looksRight(page);
  await page.getByRole("link", { name: "Processes" }).click();
  await page.getByRole("cell", { name: /echo "<img/ }).waitFor();
  await looksRight(page);
});

test("a variable is set and a .env file pasted; the page shows no value again", { skip }, async () => {
  await page.goto(at("/projects/demo/variables"));
  await press("Set a variable");
  // With the keyboard alone: the first field has the focus, then the first missing field gets it.
  await page.locator("[name=key]:focus").waitFor();
  await page.keyboard.press("Enter");
  await page.locator("[aria-invalid][name=key]:focus").waitFor();
  await page.keyboard.type("GREETING");
  await page.keyboard.press("Tab");
  await page.keyboard.type("canary-value");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("cell", { name: "GREETING", exact: true }).waitFor();
  await press("Paste a .env");
  await page.getByLabel("Content of the file").fill("ONE='it\\'s'");
  await page.getByText(/line 1: .*put the value into double quotes/).waitFor();
  await page.getByLabel("Content of the file").fill('ONE=1\n# comment\nexport TWO="a\\nb"\nPORT=1\n');
  await page.getByText("is set by the platform").waitFor();
  await press("Save 2 variables");
  await page.getByRole("cell", { name: "TWO", exact: true }).waitFor();
  assert.ok(!(await page.content()).includes("canary-value"));
  await looksRight(page);
  await page.getByRole("row", { name: "GREETING" }).getByRole("button", { name: "Replace" }).click();
  await press("As in a deployment");
  await page.getByLabel("Deployment", { exact: true }).selectOption("2");
  await press("Save");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("a domain shows the record to create", { skip }, async () => {
  await page.goto(at("/projects/demo/domains"));
  await press("Attach a hostname");
  const hostname = page.getByLabel("Hostname", { exact: true });
  await faults.during([/^400 \/v1\/projects\/demo\/domains$/], async () => {
    await hostname.fill(script);
    await press("Attach");
    await page.locator("input[aria-invalid][name=hostname]:focus").waitFor();
  });
  await hostname.fill("shop.example.com");
  await press("Attach");
  await page
    .getByRole("button", { name: /Copy the value of the A/ })
    .first()
    .waitFor();
  await looksRight(page);
});

test("a cron job is created and run on demand", { skip }, async () => {
  await page.goto(at("/projects/demo/cron"));
  await press("New job");
  // Submit with two empty fields; the first one gets the focus and keeps it while typing.
  await page.locator("[name=name]:focus").waitFor();
  await page.keyboard.press("Enter");
  await page.getByText("This field is required.").nth(1).waitFor();
  await page.locator("[aria-invalid][name=name]:focus").waitFor();
  await page.keyboard.type("clean-up");
  await page.getByLabel("Schedule").fill("0 3 * * *");
  await page.getByText(/Next: /).waitFor();
  await press("Save");
  await press("Import");
  await page
    .getByLabel("vercel.json, or its list of crons")
    .fill('{ "crons": [{ "path": "/jobs/mails", "schedule": "*/5 * * * *" }] }');
  await press("Import 1 job");
  await page.getByText("Every 5 minutes").waitFor();
  await page.getByText("Every day at 03:00 UTC").waitFor();
  await press("Run now: clean-up");
  await page
    .getByRole("cell", { name: /Succeeded/ })
    .first()
    .waitFor();
  await looksRight(page);
  await page.setViewportSize(screens.phone);
  const job = page.getByRole("list", { name: "Cron jobs" }).getByRole("listitem").filter({ hasText: "clean-up" });
  await job.getByText(/Every day at 03:00 UTC · next in/).waitFor();
  await job.getByText("Succeeded").waitFor();
  await page.setViewportSize(screens.usual);
  await page.getByRole("link", { name: /clean-up/ }).click();
  await page.getByText("1 succeeded").waitFor();
});

test("rows are shown as text, inserted, and deleted after their key is typed", { skip }, async () => {
  await page.goto(at("/projects/demo/database"));
  await page.getByLabel("SQL statement").fill('select id + 41 as answer, customer, 1 as U&"\\202elatot" from orders');
  await press("Run");
  await page.getByRole("cell", { name: "42" }).waitFor();
  await page.getByRole("cell", { name: script }).waitFor();
  await looksRight(page);
  // Reduce the page size to one table, as if there were more than 500.
  const ofTables = /\/data\/tables\?.*limit=500/;
  await page.route(ofTables, (route) => route.continue({ url: route.request().url().replace("limit=500", "limit=1") }));
  await page.reload();
  const tables = page.getByRole("table", { name: "Tables" }).getByRole("row");
  await press("Show more tables");
  await tables.nth(2).waitFor();
  assert.equal(await tables.count(), 3);
  await page.unroute(ofTables);
  await page.reload();
  await page.getByRole("link", { name: "in⟨202E⟩voices" }).click();
  await heading("in⟨202E⟩voices").waitFor();
  await press("Insert a row");
  await page.getByRole("dialog", { name: "Insert into in⟨202E⟩voices" }).waitFor();
  await showsMarks(page);
  await page.goto(at("/projects/demo/database"));
  await page.getByRole("link", { name: "orders" }).click();
  await heading("orders").waitFor();
  await page.getByRole("cell", { name: script }).waitFor();
  await looksRight(page);
  await press("Insert a row");
  await page.getByLabel("id").fill("2");
  await page.getByLabel("customer").fill("Second");
  await press("Insert");
  await page.getByRole("cell", { name: "Second" }).waitFor();
  await press("Delete row 2");
  await page.getByLabel(/Type 2 to confirm/).fill("2");
  await press("Delete");
  await page.getByRole("cell", { name: "Second" }).waitFor({ state: "detached" });
});

test("connections, slow statements and extensions are shown, and a connection is ended", { skip }, async () => {
  assert.equal((await platform.visit("demo", "/connect")).body, "connected");
  await page.goto(at("/projects/demo/database"));
  await page.getByText("berth db psql --project demo").waitFor();
  const held = page.getByRole("table", { name: "Connections" }).getByRole("row", { name: /held/ });
  await held.getByText("Idle").waitFor();
  const statements = page.getByRole("table", { name: "Slow statements" });
  await statements.getByText(/^insert into orders values \(\$2, \$1\)/).waitFor();
  const sorted = page.waitForResponse(/statements\?sort=most/);
  await press("Longest");
  assert.equal((await sorted).status(), 200);
  const extensions = page.getByRole("table", { name: "Extensions" }).getByRole("row");
  assert.equal(await extensions.count(), 2);
  await press(/^Show \d+ available ones$/);
  await extensions.filter({ hasText: "pgcrypto" }).getByText("the project").waitFor();
  await looksRight(page);
  await page.setViewportSize(screens.phone);
  await looksRight(page);
  await page.setViewportSize(screens.usual);
  await held.getByRole("button", { name: /^End connection/ }).click();
  await press("End it");
  await held.waitFor({ state: "detached" });
});

test("a branch of the database is made, read and deleted", { skip }, async () => {
  await page.goto(at("/projects/demo/database"));
  await press("New branch");
  await page.getByLabel("Name", { exact: true }).fill("tried");
  await press("Copy the database");
  const branch = page.getByRole("table", { name: "Branches" }).getByRole("row", { name: /tried/ });
  await branch.getByText("Ready").waitFor();
  await looksRight(page);
  await page.getByLabel("Where to read").selectOption("tried");
  await page.getByLabel("SQL statement").fill("select count(*) + 41 as answer from orders");
  await press("Run");
  await page.getByRole("cell", { name: "42" }).waitFor();
  await branch.getByRole("button", { name: "Delete" }).click();
  await page.getByLabel("Type tried to confirm").fill("tried");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await branch.waitFor({ state: "detached" });
});

test("a backup is created and verified table by table", { skip }, async () => {
  await takeFromPalette("demo: make a backup", /demo: Make a backup/);
  await page.getByRole("dialog").getByRole("button", { name: "Back up the database" }).press("Enter");
  await heading("Backups").waitFor();
  await page.getByRole("cell", { name: /Completed/ }).waitFor();
  await page.getByRole("link", { name: /bak_/ }).click();
  await press("Verify");
  await page.getByText("Verified", { exact: true }).waitFor();
  await looksRight(page);
});

test("a backup is downloaded, restored beside the live database, and promoted", { skip }, async () => {
  await press("SQL text");
  const saving = page.waitForEvent("download");
  await press("Download");
  const saved = await readFile(await (await saving).path(), "utf8");
  assert.match(saved, /CREATE TABLE public\.orders/);
  assert.ok(saved.includes(script));
  await press("Encrypted (age)");
  const sealing = page.waitForEvent("download");
  await press("Download");
  const sealed = await sealing;
  assert.match(sealed.suggestedFilename(), /^demo-.*\.sql\.age$/);
  assert.match(await readFile(await sealed.path(), "latin1"), /^age-encryption\.org\/v1\n/);
  await press("Restore");
  await press("Restore into a new database");
  await page.waitForURL(at("/projects/demo/backups"));
  await press("Promote");
  await page.getByLabel("Type demo to confirm").fill("demo");
  await page.getByRole("dialog").getByRole("button", { name: "Promote" }).click();
  await page.getByRole("cell", { name: "was live before" }).waitFor();
  await looksRight(page);
});

test("a deployment's mark on the timeline fills in the moment before it", { skip }, async () => {
  const path = "/v1/projects/demo/database/archive";
  const { body: archive } = await platform.call<Result<"backups.archive">>("GET", path);
  const { body } = await platform.call<Result<"deployments.list">>("GET", "/v1/projects/demo/deployments");
  const { created_at, number } = body.deployments.at(-1) ?? assert.fail("nothing was deployed");
  // As if the database had been there before the deployment.
  const window = { from: new Date(Date.parse(created_at) - 3_600_000).toISOString(), to: new Date().toISOString() };
  const whole: Result<"backups.archive"> = { ...archive, windows: [window] };
  await page.route(`**${path}`, (route) => route.fulfill({ json: whole }));
  await page.goto(at("/projects/demo/backups"));
  await press(new RegExp(`^Before deployment ${number},`));
  const moment = await page.getByRole("dialog").getByLabel("Moment (UTC)").inputValue();
  assert.equal(Date.parse(`${moment}Z`), Date.parse(created_at));
  await looksRight(page);
  await page.unroute(`**${path}`);
});

test('the header\'s "Roll back" opens its form with the deployment to go back to', { skip }, async () => {
  await page.goto(at("/projects/demo/variables"));
  await press("Actions");
  const find = page.getByRole("combobox", { name: "Actions" });
  await find.fill("roll back");
  await page.getByRole("option", { name: /^Roll back …/, selected: true }).waitFor();
  await find.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Roll back" });
  await dialog.getByRole("button", { name: /^Roll back to #\d+$/ }).waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
});

test(
  "pages say what holds here: the Procfile's release command, what this runtime builds, a way back only if there is one",
  { skip },
  async () => {
    await page.goto(at("/projects/demo/settings"));
    await page.getByRole("row", { name: /^release node migrate\.js/ }).waitFor();
    await platform.call("POST", "/v1/projects", { slug: "bare", name: "Bare" });
    await page.goto(at("/projects/bare/deployments"));
    await page.getByText("Node.js, Python, Go, Rust, Java, PHP, Ruby and static pages are recognised.").waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Go to" }).fill("bare: ");
    await page
      .getByRole("option", { name: /^bare: / })
      .first()
      .waitFor();
    assert.equal(await page.getByRole("option", { name: /^bare: Roll back/ }).count(), 0);
    await page.keyboard.press("Escape");
    await platform.call("DELETE", "/v1/projects/bare?purge=true");
  },
);

test("a failed push shows an explanation, and the rollback dialog shows what changes", { skip }, async () => {
  await app.commit({ "server.js": `${server}\nprocess.exit(3);` }, script);
  assert.notEqual((await app.push(branch)).exitCode, 0);
  await page.goto(at("/projects/demo/deployments"));
  await page
    .getByRole("link", { name: /crashed/ })
    .first()
    .click();
  await page.getByRole("region", { name: "Failure" }).getByText("crash_on_boot", { exact: true }).waitFor();
  await page.getByText("still serves").waitFor();
  await page.getByRole("button", { name: "Deploy this commit again" }).waitFor();
  const begins = page.getByRole("log").locator("[aria-current=true]").filter({ hasText: "crashed" });
  const isInSight = async () => {
    const [line, log] = [await begins.boundingBox(), await page.getByRole("log").boundingBox()];
    return line !== null && log !== null && line.y >= log.y && line.y + line.height <= log.y + log.height;
  };
  await eventually(isInSight, "the log starts at the line with the cause");
  await page.getByText(script, { exact: true }).first().waitFor();
  await looksRight(page);
  await page.goto(at("/projects/demo/deployments"));
  await page.setViewportSize(screens.phone);
  const failed = page.getByRole("list", { name: "Deployments" }).getByRole("listitem").filter({ hasText: "Failed" });
  await failed.getByText(/crashed while it started/).waitFor();
  await failed.getByText(/ago|now/).waitFor();
  await page.setViewportSize(screens.usual);
  await page.getByRole("button", { name: "Roll back to #1" }).click();
  await page.getByText("GREETING").waitFor();
  await page.getByText("Commits that are undone").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Roll back to #1" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByText("rollback").first().waitFor();
  await page.getByRole("link", { name: /^#1\b/ }).click();
  await press("Roll back to #1");
  await page.getByRole("dialog").getByText("Domains").waitFor();
  await page.keyboard.press("Escape");
  await page.goto(at("/projects/demo/deployments"));
  await page.getByRole("link", { name: "Compare" }).click();
  await choose("From deployment", "1");
  await choose("To deployment", "2");
  await page.getByText("GREETING").waitFor();
  await looksRight(page);
});

test("the keyboard alone can sign in, open a project and roll back, with the focus visible", { skip }, async () => {
  const isSettled = async () => {
    const { body } = await platform.call<{ deployments: { status: string }[] }>("GET", "/v1/projects/demo/deployments");
    return body.deployments.every(({ status }) => !["pending", "starting"].includes(status));
  };
  await eventually(isSettled, "the previous rollback has ended");
  const visitor = await openPage();
  const enter = async (target: Locator) => {
    await tabTo(visitor, target);
    await visitor.keyboard.press("Enter");
  };
  await visitor.goto(at("/"));
  await visitor.locator("[name=token]:focus").waitFor();
  await visitor.keyboard.type(platform.token);
  await visitor.keyboard.press("Enter");
  await enter(visitor.getByRole("cell").getByRole("link", { name: /^demo/ }).first());
  await enter(visitor.getByRole("navigation", { name: "Project" }).getByRole("link", { name: "Deployments" }));
  await enter(visitor.getByRole("button", { name: "Roll back to #1" }));
  const submit = visitor.getByRole("dialog").locator("[type=submit]:focus");
  await submit.waitFor();
  await visitor.keyboard.press("Escape");
  // The browser closes it before the page removes it; a key between the two, faster than any hand, would open nothing.
  await visitor.locator("dialog[aria-labelledby]").waitFor({ state: "detached" });
  // Closing the dialog restores the focus.
  await visitor.locator('[aria-label="Roll back to #1"]:focus').waitFor();
  await visitor.keyboard.press("Enter");
  await submit.waitFor();
  await visitor.keyboard.press("Enter");
  await visitor.getByRole("dialog").waitFor({ state: "detached" });
  await visitor.getByText("rollback", { exact: true }).nth(1).waitFor();
  await visitor.context().close();
});

test("a folder is planned and deployed without git, except for files that .gitignore matches", { skip }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "berth-folder-"));
  await mkdir(join(folder, "public"));
  for (const [path, text] of [
    ["public/index.html", "<p>Hello</p>"],
    ["public/notes.log", "left out"],
    [".gitignore", "*.log"],
  ] as const)
    await writeFile(join(folder, path), text);
  await platform.call("POST", "/v1/projects", { slug: "folder", name: "Folder" });
  await page.goto(at("/projects/folder"));
  await looksRight(page);
  await page.getByLabel("Folder to deploy").setInputFiles(folder);
  await page.getByRole("heading", { name: /^Plan for berth-folder-/ }).waitFor();
  await page.getByText("2 files").waitFor();
  await page.getByRole("definition").getByText("Static files", { exact: true }).waitFor();
  await looksRight(page);
  const { deployments } = (await platform.call("GET", "/v1/projects/folder/deployments")).body as { deployments: [] };
  assert.deepEqual(deployments, []);
  await press("Deploy");
  await heading("Deployment #1").waitFor();
  await page.getByRole("main").getByText("Live", { exact: true }).first().waitFor();
  await page.goto(at("/projects/folder/files"));
  await page.getByRole("link", { name: "public/" }).click();
  await page.getByRole("link", { name: /index.html/ }).waitFor();
  assert.equal(await page.getByText("notes.log").count(), 0);
  await page.goto(at("/projects/folder/files?path=absent/"));
  await page.getByRole("heading", { name: "No such folder" }).waitFor();
  await faults.during([/404 .*source/], async () => {
    await page.goto(at("/projects/folder/files?path=absent.html"));
    await page.getByText(/^The commit \w{8} has no file absent.html/).waitFor();
  });
  await page.goto(at("/projects/folder/files?path=public/"));
  await page.getByRole("link", { name: /index.html/ }).click();
  await page.getByText("<p>Hello</p>").waitFor();
  await looksRight(page);
  await rm(folder, { recursive: true });
});

test("a project is renamed and follows a branch, and its webhook secret is shown once", { skip }, async () => {
  await page.goto(at("/projects/folder/settings"));
  await press("Rename");
  await page.getByLabel("New name").fill("papers");
  await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
  await page.waitForURL(at("/projects/papers/settings"));
  await page.getByText("leads here, until").waitFor();
  await press("Follow a repository");
  // The .invalid domain never resolves.
  await page.getByRole("textbox", { name: "Repository" }).fill("git@git.invalid:acme/papers.git");
  await page.getByRole("dialog").getByRole("button", { name: "Follow", exact: true }).click();
  const steps = page.getByRole("dialog", { name: "Let the repository's host know" });
  await steps.getByText(/^ssh-ed25519 /).waitFor();
  await steps.getByText("Its secret, which is shown this once:").waitFor();
  await press("Done");
  await page.getByRole("button", { name: "Copy the deploy key" }).waitFor();
  await looksRight(page);
  await press("Stop following");
  await page.getByLabel("Type papers to confirm").fill("papers");
  await page.getByRole("dialog").getByRole("button", { name: "Stop following" }).click();
  await page.getByText("No repository is followed").waitFor();
  await press("Delete");
  await page.getByText("Undelete brings everything back, without a time limit.").waitFor();
  await page.keyboard.press("Escape");
});

test("a page that meets the rate limit is read again as soon as it may", { skip }, async () => {
  const limited = { code: "rate_limited", error: "Too many requests." };
  const refuse = (route: Route) => route.fulfill({ status: 429, headers: { "retry-after": "1" }, json: limited });
  await page.route(/papers\/env$/, refuse, { times: 1 });
  await page.goto(at("/projects/papers/variables"));
  await page.getByText("Too many requests.").waitFor();
  await page.getByText("No variables of your own yet").waitFor();
});
