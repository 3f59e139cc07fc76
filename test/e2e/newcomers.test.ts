// Drawn with other journey files: it starts a whole platform and builds the dashboard.
import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { firstPush } from "../../src/contract/first-push.ts";
import { run } from "../../src/kit/exec.ts";
import { launchBrowser, noBrowser, type TestBrowser } from "../support/browser.ts";
import { cliUser, type CliUser } from "../support/cli.ts";
import { eventually, guardMs } from "../support/eventually.ts";
import { looksRight, withPasskeys } from "./dashboard-page.ts";
import { nodeApp, startPlatform, type TestPlatform } from "./platform.ts";

/** From the first click of a new owner to the deployment of the colleague. */
const mostSeconds = 180;
const token = /(?:berth|brt)_[a-z]_\w+/;

let platform: TestPlatform;
let chromium: TestBrowser;
before(async () => {
  if (noBrowser !== undefined) return;
  platform = await startPlatform();
  const asPage = { headers: { accept: "text/html" } };
  await eventually(async () => (await fetch(platform.api, asPage)).ok, "the dashboard is built", 1_800_000);
  chromium = await launchBrowser(Number(new URL(platform.api).port));
});
after(async () => {
  await chromium?.close();
  await platform?.destroy();
});

const newcomer = async () => {
  const page = await (await chromium.browser.newContext()).newPage();
  page.setDefaultTimeout(guardMs);
  return withPasskeys(page);
};
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).first().click();
const reads = (page: Page, name: string) => page.getByRole("heading", { name }).first().waitFor();
const goTo = (page: Page, path: string) => page.goto(new URL(path, page.url()).href);

/** The owner signs in by the link that the start printed, makes a project and an account, and returns the link for a colleague. */
async function invites(owner: Page): Promise<string> {
  await owner.goto(/http\S+\/sign-in#\S+/.exec(platform.output())?.[0] ?? "");
  await reads(owner, "Overview");
  await goTo(owner, "/access");
  await press(owner, "Make an account for yourself");
  await owner.getByLabel("Your name").fill("Grace");
  await press(owner, "Create a passkey and join");
  await reads(owner, "Overview");
  await press(owner, "New project");
  await owner.getByRole("textbox", { name: "Slug" }).fill("shop");
  await press(owner, "Create");
  await owner.waitForURL("**/projects/shop");
  await goTo(owner, "/access");
  await press(owner, "Invite a person");
  await owner.getByLabel("Only some projects").check();
  await owner.getByLabel("shop", { exact: true }).check();
  await press(owner, "Invite");
  return owner.getByRole("dialog", { name: "The invitation" }).locator("code").innerText();
}

/** The colleague sees only themselves and their own program, and leaves. */
async function leaves(colleague: Page): Promise<void> {
  await goTo(colleague, "/access");
  const people = colleague.getByRole("table", { name: "People" }).getByRole("row");
  await people.filter({ hasText: "Ada" }).waitFor();
  assert.equal(await people.filter({ hasText: "Grace" }).count(), 0);
  await colleague.getByRole("button", { name: /^Disconnect berth on / }).waitFor();
  await looksRight(colleague);
  await goTo(colleague, "/account");
  await press(colleague, "Leave the organization");
  const dialog = colleague.getByRole("dialog");
  await dialog.getByLabel("Type main to confirm").fill("main");
  await looksRight(colleague);
  await dialog.getByRole("button", { name: "Leave", exact: true }).click();
  await reads(colleague, "Your session has ended");
}

/** Asserts that a page shows no token: neither its elements, nor its fields, its address or what it stores. */
async function showsNoToken(page: Page): Promise<void> {
  const kept = "[location.href, JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie]";
  const typed = `[...document.querySelectorAll("input, textarea")].map(({ value }) => value)`;
  const seen = (await page.evaluate(`[...${kept}, ...${typed}].join("\\n")`)) as string;
  assert.doesNotMatch(`${await page.content()}\n${seen}`, token, page.url());
}

/** Asserts that no file of a user holds a token, except for the command line's own credentials. */
async function keepsNoToken(user: CliUser): Promise<void> {
  assert.match(await readFile(user.configFile, "utf8"), token);
  for (const file of await readdir(user.home, { recursive: true, withFileTypes: true })) {
    const path = join(file.parentPath, file.name);
    if (!file.isFile() || path === user.configFile) continue;
    assert.doesNotMatch(await readFile(path, "latin1"), token, basename(path));
  }
}

test(
  "a newcomer invites a colleague who deploys within three minutes, and neither of them sees a token",
  { skip: noBrowser ?? false },
  async (t) => {
    await platform.call("POST", "/v1/projects", { slug: "secret", name: "Secret" });
    await using user = await cliUser();
    let printed = "";
    const startedAt = Date.now();
    const owner = await newcomer();
    const link = await invites(owner);
    await showsNoToken(owner);

    const colleague = await newcomer();
    await colleague.goto(link);
    await colleague.getByText("Grace invites you as a member, for the project shop.").waitFor();
    await showsNoToken(colleague);
    await colleague.getByLabel("Your name").fill("Ada");
    await press(colleague, "Create a passkey and join");
    await reads(colleague, "Overview");
    assert.equal(await colleague.getByText("secret").count(), 0);
    await showsNoToken(colleague);
    await colleague.getByRole("main").getByRole("link", { name: "shop" }).first().click();
    const shown = (text: string) => colleague.locator("code").filter({ hasText: text }).first().innerText();
    const [login, connect] = [await shown("berth login"), await shown("berth link")];
    await showsNoToken(colleague);

    const logging = user.start([...login.split(" ").slice(1), "--device"]);
    logging.child.stderr.on("data", (chunk: Buffer) => (printed += chunk.toString()));
    const code = await eventually(async () => /\b[A-Z]{4}-[A-Z]{4}\b/.exec(printed)?.[0], "a code is shown");
    await colleague.goto(/http\S+\/session\/device/.exec(printed)?.[0] ?? "");
    await colleague.getByLabel("Code").fill(code);
    await press(colleague, "Continue");
    await showsNoToken(colleague);
    await press(colleague, "Allow");
    await reads(colleague, "Connected");
    await showsNoToken(colleague);
    const { exitCode, stdout, stderr } = await logging.ended;
    assert.equal(exitCode, 0, stderr);

    const types = async (file: string, ...args: string[]) => {
      const env = { ...user.env, GIT_AUTHOR_NAME: "Ada", GIT_AUTHOR_EMAIL: "ada@localhost" };
      const committer = { GIT_COMMITTER_NAME: "Ada", GIT_COMMITTER_EMAIL: "ada@localhost" };
      const done = await run({ file, args }, { cwd: user.home, env: { ...env, ...committer }, timeoutMs: guardMs });
      printed += done.stdout + done.stderr;
      assert.equal(done.exitCode, 0, `${file} ${args.join(" ")}: ${done.stderr} ${platform.output().slice(-6000)}`);
    };
    await Promise.all(
      Object.entries(nodeApp("hello from Ada")).map(([name, text]) => writeFile(join(user.home, name), text)),
    );
    await types("git", "init", "--quiet", "--initial-branch=main");
    await types("git", "add", ...Object.keys(nodeApp("")));
    await types("git", "commit", "--quiet", "--message=First");
    const linked = await user.berth(connect.split(" ").slice(1));
    assert.equal(linked.exitCode, 0, linked.stderr);
    await types("git", ...firstPush.split(" ").slice(1));
    assert.equal((await platform.visit("shop")).body, "hello from Ada");
    const seconds = (Date.now() - startedAt) / 1000;
    t.diagnostic(`from the printed link to the colleague's live deployment: ${seconds.toFixed(1)} s`);
    assert.ok(seconds < mostSeconds, `${seconds} s`);

    await goTo(colleague, "/projects/shop");
    await colleague
      .getByRole("status")
      .getByText(/@[0-9a-f]{8}$/)
      .waitFor();
    await showsNoToken(colleague);
    const listed = await user.berth(["projects"]);
    assert.doesNotMatch(listed.stdout, /secret/);
    for (const each of [printed, stdout, stderr, linked.stdout, linked.stderr, listed.stdout])
      assert.doesNotMatch(each, token);
    await keepsNoToken(user);
    await leaves(colleague);
    const refused = await user.berth(["projects"]);
    assert.equal(refused.exitCode, 3, "the colleague's programs have ended, too");
    const { body } = await platform.call<{ activity: { actor: string; action: string }[] }>("GET", "/v1/activity");
    assert.ok(JSON.stringify(body).includes("Ada via berth on"), JSON.stringify(body).slice(0, 2000));
  },
);
