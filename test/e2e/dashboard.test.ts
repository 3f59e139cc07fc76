import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { BrowserContext, Locator, Page } from "playwright-core";
import { projectActions } from "../../src/dashboard/frame/actions.ts";
import { drawCases } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { launchBrowser, noBrowser, type TestBrowser } from "../support/browser.ts";
import { createFaults, looksRight, observeShifts, screens, tabTo } from "./dashboard-page.ts";
import { author, branch, files, script, server } from "./dashboard-app.ts";
import { buildsTheSame, scriptBytes } from "./dashboard-bundle.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";

const skip = noBrowser ?? false;

let platform: TestPlatform;
let chromium: TestBrowser;
let context: BrowserContext;
let page: Page;
let app: TestApp;
const faults = createFaults();

before(async () => {
  if (noBrowser !== undefined) return;
  // A machine that only listens on loopback publishes no records.
  platform = await startPlatform({ BERTH_PUBLIC_ADDRESSES: "203.0.113.7" });
  const asPage = { headers: { accept: "text/html" } };
  await eventually(async () => (await fetch(at("/"), asPage)).ok, "the dashboard is built", 900_000);
  chromium = await launchBrowser(Number(new URL(platform.api).port));
  context = await chromium.browser.newContext({ viewport: screens.usual });
  page = await faults.watch(context);
  await page.addInitScript(observeShifts);
});
after(async () => {
  await chromium?.close();
  await platform?.destroy();
});

/** Another person's browser, signed in with a token. */
async function visitorWith(token: string): Promise<Page> {
  const visitor = await faults.watch(await chromium.browser.newContext({ viewport: screens.usual }));
  await visitor.goto(at("/"));
  await visitor.getByLabel("API token").fill(token);
  await visitor.getByRole("button", { name: "Sign in" }).click();
  return visitor;
}

const at = (path: string) => `${platform.api}${path}`;
const heading = (name: string | RegExp) => page.getByRole("heading", { level: 1, name });
const press = (name: string | RegExp) => page.getByRole("button", { name, exact: typeof name === "string" }).click();

test("the link of the start banner signs in once and leaves no code in the address", { skip }, async () => {
  const link = /http\S+\/sign-in#\S+/.exec(platform.output())?.[0] ?? "";
  const { hash } = new URL(link);
  await page.goto(at(`/sign-in${hash}`));
  await heading("Overview").waitFor();
  assert.equal(page.url(), at("/"));
  await page.reload();
  await heading("Overview").waitFor();
  faults.expect(/401/);
  await page.goto(at(`/sign-in${hash}`));
  await page.getByText("The link was used or has expired.").waitFor();
  await looksRight(page);
  await page.getByLabel("API token").fill(platform.token);
  await press("Sign in");
  await heading("Overview").waitFor();
  faults.expect(undefined);
});

test(
  "an empty project shows its commands, and a push appears live, stage by stage, until it serves",
  { skip },
  async () => {
    app = await createApp(platform, "demo", files);
    await app.git("config", "user.name", author);
    await app.commit({}, script);
    await platform.call("POST", "/v1/projects/demo/database");
    await page.goto(at("/projects/demo"));
    await page.getByText("git push berth HEAD:main").waitFor();
    const pushed = app.push(branch);
    await page.getByRole("link", { name: /Watch/ }).click();
    await heading(/^(Build 1|Deployment #1)$/).waitFor();
    await page.getByText("Node.js app detected").waitFor();
    assert.equal((await pushed).exitCode, 0);
    await heading("Deployment #1").waitFor();
    await page.getByRole("main").getByText("Live", { exact: true }).first().waitFor();
    await page.getByText(`${branch}@`).first().waitFor();
    await page.getByText(author).waitFor();
    await looksRight(page);
  },
);

/** Chooses in a list that stands for a part of the address: the page goes there first, and the list follows. */
async function choose(label: string, value: string): Promise<void> {
  const list = page.getByLabel(label, { exact: true });
  await list.selectOption(value);
  await list.locator(`option[value="${value}"]:checked`).waitFor({ state: "attached" });
}

test("logs follow, and what an application prints is text", { skip }, async () => {
  await page.goto(at("/projects/demo/logs"));
  const log = page.getByRole("log");
  await log.getByText(script).first().waitFor();
  await choose("Time", "1h");
  await page.getByLabel("Search the log").fill("tick");
  await log.locator("mark").first().waitFor();
  await looksRight(page);
  await page.getByLabel("Search the log").fill("");
  await log.locator("mark").first().waitFor({ state: "detached" });
  await choose("Time", "");
  await log.getByText(script).first().waitFor();
  await press("Pause");
  await page.getByRole("button", { name: "Follow the end" }).waitFor();
  await log.press("Home");
  // The newest thousand lines come first.
  const older = page.getByRole("button", { name: "Show older lines" });
  await older.click();
  await older.waitFor({ state: "detached" });
  await log.press("Home");
  await log.getByText(/early 0$/).waitFor();
});

test("a log that is paused before its first lines leads to the older ones", { skip }, async () => {
  const answers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const lines = /\/v1\/projects\/demo\/logs\?.*process=web/;
  let asked = 0;
  // The second answer waits as well: the application prints on, and those lines would be new.
  await page.route(lines, (route) => answers[asked++ === 0 ? 0 : 1].promise.then(() => route.continue()));
  await choose("Process", "web");
  await press("Pause");
  await page.getByRole("button", { name: "Follow the end" }).waitFor();
  answers[0].resolve();
  await page.getByRole("button", { name: "Show older lines" }).waitFor();
  assert.equal(await page.getByRole("button", { name: /new line/ }).count(), 0);
  answers[1].resolve();
  await page.getByRole("button", { name: /new line/ }).waitFor();
  await page.unroute(lines);
});

test("a command runs once, and its output follows as text", { skip }, async () => {
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

test("a variable is set, and a .env pasted; no value comes back", { skip }, async () => {
  await page.goto(at("/projects/demo/variables"));
  await press("Set a variable");
  // The keyboard alone: the first field has the focus, and what is missing gets it.
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
  const hostname = page.getByLabel("Hostname");
  faults.expect(/400/);
  await hostname.fill(script);
  await press("Attach");
  await page.locator("input[aria-invalid][name=hostname]:focus").waitFor();
  faults.expect(undefined);
  await hostname.fill("shop.example.com");
  await press("Attach");
  await page
    .getByRole("button", { name: /Copy the value of the A/ })
    .first()
    .waitFor();
  await looksRight(page);
});

test("a cron job is made and run now", { skip }, async () => {
  await page.goto(at("/projects/demo/cron"));
  await press("New job");
  // Two fields are empty: what is typed into the first one stays there.
  await page.locator("[name=name]:focus").waitFor();
  await page.keyboard.press("Enter");
  await page.getByText("This is needed.").nth(1).waitFor();
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
  await page.getByRole("cell", { name: /Succeeded/ }).waitFor();
  await looksRight(page);
});

test("rows are shown as text, inserted, and deleted when their key is typed", { skip }, async () => {
  await page.goto(at("/projects/demo/database"));
  await page.getByLabel("SQL statement").fill("select id + 41 as answer, customer from orders");
  await press("Run");
  await page.getByRole("cell", { name: "42" }).waitFor();
  await page.getByRole("cell", { name: script }).waitFor();
  await looksRight(page);
  await page.getByRole("link", { name: "orders" }).click();
  await page.getByRole("cell", { name: script }).waitFor();
  await looksRight(page);
  await press("Insert a row");
  await page.getByLabel("id").fill("2");
  await page.getByLabel("customer").fill("Second");
  await press("Insert");
  await page.getByRole("cell", { name: "Second" }).waitFor();
  await page.getByRole("button", { name: "Delete this row" }).nth(1).click();
  await page.getByLabel(/Type 2 to confirm/).fill("2");
  await press("Delete");
  await page.getByRole("cell", { name: "Second" }).waitFor({ state: "detached" });
});

test("a backup is made and verified table by table", { skip }, async () => {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to" }).waitFor();
  await page.keyboard.type("demo: make a backup");
  await page.getByRole("option", { name: /demo: Make a backup/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Back up now" }).waitFor();
  await page.keyboard.press("Enter");
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
  await press("Restore");
  await press("Restore into a new database");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.goto(at("/projects/demo/backups"));
  await press("Promote");
  await page.getByLabel("Type demo to confirm").fill("demo");
  await page.getByRole("dialog").getByRole("button", { name: "Promote" }).click();
  await page.getByRole("cell", { name: "was live before" }).waitFor();
  await looksRight(page);
});

test("a failed push is explained, and the dialog of a rollback says what changes", { skip }, async () => {
  await app.commit({ "server.js": `${server}\nprocess.exit(3);` }, script);
  assert.notEqual((await app.push(branch)).exitCode, 0);
  await page.goto(at("/projects/demo/deployments"));
  await page
    .getByRole("link", { name: /crashed/ })
    .first()
    .click();
  await page.getByRole("region", { name: "Failure" }).getByText("crash_on_boot", { exact: true }).waitFor();
  await page.getByText("still serves").waitFor();
  await page.getByText(script, { exact: true }).first().waitFor();
  await looksRight(page);
  await page.goto(at("/projects/demo/deployments"));
  await page.getByRole("button", { name: "Roll back to #1" }).click();
  await page.getByText("GREETING").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Roll back to #1" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByText("rollback").first().waitFor();
  await page.getByRole("link", { name: "Compare" }).click();
  await page.getByLabel("From deployment").selectOption("1");
  await page.getByLabel("To deployment").selectOption("2");
  await page.getByText("GREETING").waitFor();
  await looksRight(page);
});

test("the keyboard alone signs in, opens a project and rolls back, with the focus in sight", { skip }, async () => {
  const isSettled = async () => {
    const { body } = await platform.call<{ deployments: { status: string }[] }>("GET", "/v1/projects/demo/deployments");
    return body.deployments.every(({ status }) => !["pending", "starting"].includes(status));
  };
  await eventually(isSettled, "the rollback before is over");
  const visitor = await faults.watch(await chromium.browser.newContext({ viewport: screens.usual }));
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
  // The focus goes back to where it was.
  await visitor.locator('[aria-label="Roll back to #1"]:focus').waitFor();
  await visitor.keyboard.press("Enter");
  await submit.waitFor();
  await visitor.keyboard.press("Enter");
  await visitor.getByRole("dialog").waitFor({ state: "detached" });
  await visitor.getByText("rollback", { exact: true }).nth(1).waitFor();
  await visitor.context().close();
});

test("a folder is deployed without git, without what its ignore file names", { skip }, async () => {
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
  await heading("Deployment #1").waitFor();
  await page.getByRole("main").getByText("Live", { exact: true }).first().waitFor();
  await page.goto(at("/projects/folder/files"));
  await page.getByRole("link", { name: "public/" }).click();
  await page.getByRole("link", { name: /index.html/ }).waitFor();
  assert.equal(await page.getByText("notes.log").count(), 0);
  await page.getByRole("link", { name: /index.html/ }).click();
  await page.getByText("<p>Hello</p>").waitFor();
  await looksRight(page);
  await rm(folder, { recursive: true });
});

test("a project is renamed, and follows a branch: the secret of its webhook is shown once", { skip }, async () => {
  await page.goto(at("/projects/folder/settings"));
  await press("Rename");
  await page.getByLabel("New name").fill("papers");
  await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
  await page.waitForURL(at("/projects/papers/settings"));
  await page.getByText("leads here, until").waitFor();
  await press("Follow a repository");
  // A host that no resolver knows.
  await page.getByRole("textbox", { name: "Repository" }).fill("git@git.invalid:acme/papers.git");
  await press("Follow");
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
});

test("a stream of changes that broke goes on: what happened meanwhile is shown", { skip }, async () => {
  await page.goto(at("/"));
  await page.getByRole("link", { name: "demo" }).first().waitFor();
  faults.expect(/ERR_|Failed to load/);
  await context.setOffline(true);
  await platform.call("POST", "/v1/projects", { slug: "meanwhile", name: script });
  await context.setOffline(false);
  await page
    .getByRole("link", { name: /meanwhile/ })
    .first()
    .waitFor();
  faults.expect(undefined);
});

test("what a token in approval mode wants to delete waits for a person, and the page says so", { skip }, async () => {
  const made = await platform.call("POST", "/v1/api-tokens", { name: "agent", approval_mode: true });
  const asked = await fetch(at("/v1/projects/meanwhile"), {
    method: "DELETE",
    headers: { authorization: `Bearer ${String(made.body["token"])}` },
  });
  assert.equal(asked.status, 403);
  await page.goto(at("/approvals"));
  await page.getByRole("cell", { name: /DELETE \/v1\/projects\/meanwhile/ }).waitFor();
  await looksRight(page);
});

test(
  "an organization that the operator makes sees that it is suspended, and goes on when it is enabled",
  { skip },
  async () => {
    await page.goto(at("/operator/organizations"));
    await press("New organization");
    await page.getByLabel("Slug").fill("harbour");
    await page.getByLabel("Name").fill(script);
    await press("Create");
    const token = await page.getByRole("dialog").locator("code").innerText();
    await press("I have it");
    const visitor = await visitorWith(token);
    await visitor.getByText("Deploy your first application").waitFor();
    faults.expect(/403/);
    await press("Suspend");
    await page.getByLabel("Type harbour to confirm").fill("harbour");
    await page.getByRole("dialog").getByRole("button", { name: "Suspend" }).click();
    await page.getByRole("cell", { name: "Suspended" }).waitFor();
    // Without a click: its stream of changes ends.
    await visitor.getByRole("heading", { name: "This organization is suspended" }).waitFor();
    await looksRight(page);
    await press("Enable");
    await page.getByRole("cell", { name: "Suspended" }).waitFor({ state: "detached" });
    await visitor.goto(at("/"));
    await visitor.getByText("Deploy your first application").waitFor();
    faults.expect(undefined);
    await visitor.context().close();
  },
);

test("a session whose token is revoked, and a platform out of reach, have screens that say so", { skip }, async () => {
  const made = await platform.call("POST", "/v1/api-tokens", { name: "short" });
  const visitor = await visitorWith(String(made.body["token"]));
  await visitor.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  faults.expect(/ERR_|Failed to load|401/);
  const lost = visitor.getByText("The platform does not answer; what is shown may be old.");
  await visitor.route("**/v1/**", (route) => route.abort());
  await visitor.getByRole("link", { name: "Activity" }).click();
  await lost.waitFor();
  await visitor.unroute("**/v1/**");
  await lost.waitFor({ state: "detached" });
  // A page whose script was never loaded.
  await visitor.context().setOffline(true);
  await visitor.getByRole("link", { name: "Access" }).click();
  await visitor.context().setOffline(false);
  await visitor.getByRole("heading", { level: 1, name: "Access" }).waitFor();
  await platform.call("DELETE", `/v1/api-tokens/${String(made.body["id"])}`);
  // Without a click: its stream of changes ends.
  await visitor.getByRole("heading", { name: "Your session has ended" }).waitFor();
  await visitor.getByRole("button", { name: "Sign in with another token" }).click();
  await visitor.getByRole("heading", { name: "Sign in to Berth" }).waitFor();
  await visitor.route("**/session/resume", (route) => route.abort());
  await visitor.goto(at("/"));
  await visitor.getByRole("heading", { name: "The platform does not answer" }).waitFor();
  await visitor.unroute("**/session/resume");
  await visitor.getByRole("button", { name: "Try again" }).click();
  await visitor.getByRole("heading", { name: "Sign in to Berth" }).waitFor();
  await visitor.context().close();
  faults.expect(undefined);
});

test("charts show what is below the pointer, and are zoomed together", { skip }, async () => {
  for (let visit = 0; visit < 5; visit += 1) await platform.visit("demo");
  await page.goto(at("/projects/demo/metrics"));
  const plots = page.locator("main canvas");
  await plots.nth(1).waitFor();
  const box = async (index: number) => (await plots.nth(index).boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
  const moveTo = async (index: number, share: number) => {
    const { x, y, width, height } = await box(index);
    await page.mouse.move(x + width * share, y + height / 2);
  };
  const timeShown = async () => (await page.locator("[data-hover] :first-child").first().innerText()).slice(-8);
  await moveTo(1, 0.1);
  await page.locator("[data-hover]").nth(1).getByText("p99").waitFor();
  const before = await timeShown();
  await moveTo(0, 0.5);
  await page.mouse.down();
  await moveTo(0, 0.95);
  await page.mouse.up();
  await moveTo(1, 0.1);
  await page.locator("[data-hover]").nth(1).getByText("p99").waitFor();
  assert.notEqual(await timeShown(), before);
});

test(
  "every other page is accessible, fits and stands still on a wide screen and a phone, light and dark",
  { skip },
  async () => {
    const ofAll = [
      "/",
      "/activity",
      "/access",
      "/account",
      "/api",
      "/operator",
      "/operator/organizations",
      "/operator/status",
    ];
    const ofProject = ["", "/deployments", "/metrics", "/backups", "/timeline", "/settings", "/cron/clean-up"].map(
      (path) => `/projects/demo${path}`,
    );
    for (const [index, path] of [...ofAll, ...ofProject].entries()) {
      await page.setViewportSize(index % 2 === 0 ? screens.phone : screens.wide);
      await page.emulateMedia({ colorScheme: index % 3 === 0 ? "dark" : "light" });
      await page.goto(at(path));
      await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
      await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
      const [score, moved] = (await page.evaluate("[window.shiftScore, window.shifted]")) as [number, string[]];
      assert.ok(score < 0.01, `${path} moved by ${score} while it loaded: ${moved.join("\n")}`);
      await looksRight(page);
    }
    await page.setViewportSize(screens.usual);
  },
);

/** Two keys one after the other, as fast as the browser takes them: a pair is one within a second. */
const pressPair = (...keys: readonly [string, string]) => Promise.all(keys.map((key) => page.keyboard.press(key)));

test("Ctrl-K goes to a page by a few letters, and Escape closes it", { skip }, async () => {
  await page.goto(at("/"));
  await heading("Overview").waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to" }).fill("demo: met");
  await page.getByRole("option", { name: /demo: Metrics/ }).waitFor();
  await page.keyboard.press("Enter");
  await heading("Metrics").waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("combobox", { name: "Go to" }).waitFor({ state: "detached" });
  await pressPair("g", "d");
  await heading("Deployments").waitFor();
  await pressPair("g", "a");
  await heading("Activity").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).getByText("To the page's search").waitFor();
  await page.setViewportSize(screens.phone);
  await looksRight(page);
  await page.setViewportSize(screens.usual);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

// The project is not deleted.
const paletteLabels = Object.entries(projectActions).flatMap(([kind, [label]]) => (kind === "undelete" ? [] : [label]));

test("the palette opens the form of each action of a project", { skip }, async () => {
  await page.goto(at("/projects/demo"));
  await heading("demo").waitFor();
  for (const label of drawCases(paletteLabels, 8)) {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Go to" }).fill(`demo: ${label}`);
    await page
      .getByRole("option", { name: `demo: ${label}` })
      .first()
      .waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("combobox", { name: "Go to" }).waitFor({ state: "detached" });
    await page.getByRole("dialog").getByRole("heading").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
});

test("two builds of the same sources give the same files", { skip }, () => buildsTheSame(platform.api));

test("the first load has at most 150 kB of script", { skip }, async () => {
  const size = await scriptBytes(platform.api);
  assert.ok(size > 0 && size <= 150_000, `${size} bytes`);
});

test("nothing broke the policy, no error reached the console, no script of a tenant ran", { skip }, async () => {
  assert.deepEqual(faults.found, []);
  assert.doesNotMatch(await page.title(), /broken in/);
});
