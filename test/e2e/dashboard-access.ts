import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { cliUser } from "../support/cli.ts";
import { eventually } from "../support/eventually.ts";
import { hasColours, looksRight, withPasskeys } from "./dashboard-page.ts";
import { at, faults, heading, mailbox, openPage, page, platform, press, skip, visitorWith } from "./dashboard-stage.ts";

const headingOf = (visitor: Page, name: string) => visitor.getByRole("heading", { level: 1, name });

/** Sends a request with this API token, not with a session, and returns the status. */
async function statusOf(token: string, path: string, method = "GET"): Promise<number> {
  const response = await fetch(at(path), { method, headers: { authorization: `Bearer ${token}` } });
  await response.body?.cancel();
  return response.status;
}

test(
  "berth open --dashboard prints a link that signs in once; a used link shows how to get another",
  { skip },
  async () => {
    await using user = await cliUser({ url: platform.api, token: platform.token });
    const { exitCode, stdout } = await user.berth(["open", "--dashboard"]);
    assert.equal(exitCode, 0);
    const [link = ""] = /http[^\s"]+\/sign-in#[^\s"]+/.exec(stdout) ?? [];
    const visitor = await openPage();
    await visitor.goto(link);
    await headingOf(visitor, "Overview").waitFor();
    await visitor.reload();
    await headingOf(visitor, "Overview").waitFor();
    const other = await platform.call("POST", "/v1/orgs", { slug: "stranger", name: "Stranger" });
    const stranger = await cliUser({ url: platform.api, token: String(other.body["owner_token"]) });
    const foreign =
      /http[^\s"]+\/sign-in#[^\s"]+/.exec((await stranger.berth(["open", "--dashboard"])).stdout)?.[0] ?? "";
    await stranger[Symbol.asyncDispose]();
    await visitor.goto(foreign);
    await headingOf(visitor, "Sign in to Stranger?").waitFor();
    await looksRight(visitor);
    await visitor.getByRole("button", { name: "Stay in" }).click();
    await headingOf(visitor, "Overview").waitFor();
    await visitor.context().close();
    const second = await openPage();
    await faults.during([/^401 \/session$/], async () => {
      await second.goto(link);
      await second.getByText("The link was used or has expired.").waitFor();
    });
    await second.getByText("berth open --dashboard").waitFor();
    await looksRight(second);
    await second.context().close();
  },
);

test("a new token works, and the page shows it only until its dialog closes", { skip }, async () => {
  await page.goto(at("/access"));
  await press("New token");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("continuous integration");
  await dialog.getByLabel("Only some scopes").check();
  await dialog.getByLabel("projects:read", { exact: true }).check();
  await press("Create");
  await page.getByRole("dialog", { name: "Token created" }).waitFor();
  await looksRight(page);
  const token = await dialog.locator("code").innerText();
  assert.equal(await statusOf(token, "/v1/projects"), 200);
  assert.equal(await statusOf(token, "/v1/api-tokens"), 403);
  await press("I have it");
  const row = page.getByRole("row", { name: /continuous integration/ });
  await row.waitFor();
  assert.ok(!(await page.content()).includes(token));
  await page.reload();
  await row.waitFor();
  assert.ok(!(await page.content()).includes(token));
  await press("Revoke continuous integration");
  await dialog.getByLabel("Type continuous integration to confirm").fill("continuous integration");
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await row.waitFor({ state: "detached" });
  assert.equal(await statusOf(token, "/v1/projects"), 401);
});

test("an SSH key is added and removed, and an invalid key shows an error at its field", { skip }, async () => {
  await page.goto(at("/access"));
  await press("Add a key");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("laptop");
  const field = dialog.getByLabel("Public key");
  await field.fill("ssh-ed25519 none");
  await faults.during([/^400 \/v1\/ssh-keys$/], async () => {
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    await dialog.locator("[aria-invalid][name=public_key]:focus").waitFor();
  });
  await field.fill(publicKey());
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  const row = page.getByRole("row", { name: /laptop.*SHA256:.*Active/ });
  await row.waitFor();
  await press("Remove laptop");
  await dialog.getByLabel("Type laptop to confirm").fill("laptop");
  await dialog.getByRole("button", { name: "Remove" }).click();
  await row.waitFor({ state: "detached" });
});

/** Returns a new SSH public key in the format of a .pub file. */
function publicKey(): string {
  const { publicKey: key } = generateKeyPairSync("ed25519");
  const parts = [Buffer.from("ssh-ed25519"), Buffer.from(key.export({ format: "jwk" }).x ?? "", "base64url")];
  const sized = parts.map((part) => Buffer.concat([Buffer.from([0, 0, 0, part.length]), part]));
  return `ssh-ed25519 ${Buffer.concat(sized).toString("base64")} me@laptop`;
}

test(
  "after an owner approves a deletion in the browser, the agent's repeated request deletes the project, and the page removes it",
  { skip },
  async () => {
    await platform.call("POST", "/v1/projects", { slug: "doomed", name: "Doomed" });
    const made = await platform.call("POST", "/v1/api-tokens", { name: "cleaner", approval_mode: true });
    const deletes = () => statusOf(String(made.body["token"]), "/v1/projects/doomed", "DELETE");
    assert.equal(await deletes(), 403);
    const watcher = await visitorWith(platform.token);
    const project = watcher.getByRole("cell").getByRole("link", { name: "doomed Doomed" });
    await project.waitFor();
    await page.goto(at("/approvals"));
    await page.getByRole("link", { name: "Review: Delete the project doomed" }).click();
    await press("Approve");
    await page.getByRole("heading", { name: "Approved" }).waitFor();
    await looksRight(page);
    await page.getByRole("link", { name: "Back to the approvals" }).click();
    const request = page.getByRole("list", { name: "Approvals" }).getByRole("listitem").filter({ hasText: "doomed" });
    await request.getByText("Approved").waitFor();
    assert.ok((await deletes()) < 300);
    await request.getByText("Used").waitFor();
    await project.waitFor({ state: "detached" });
    const { body } = await platform.call("GET", "/v1/projects/doomed");
    assert.equal(body["state"], "deleted");
    await watcher.context().close();
  },
);

test("an application that keeps crashing is shown once, as an alert", { skip }, async () => {
  await page.goto(at("/operator/status"));
  const alert = page.getByRole("row", { name: /Critical.*has crashed.*main\/demo/ });
  const crash = async () => {
    await platform.visit("demo", "/exit").catch(() => undefined);
    return (await alert.count()) > 0;
  };
  await eventually(crash, "the page shows the alert");
  await alert.getByText("last log lines").waitFor();
  assert.equal(await page.getByRole("row", { name: /^\w+ Applications\b/ }).count(), 0);
  await looksRight(page);
  await page.goto(at("/"));
  await page.getByRole("region", { name: "Needs you" }).getByText("1 open alert of the platform").waitFor();
});

test("a list that fails to load shows the reason, and a retry loads it", { skip }, async () => {
  const body = JSON.stringify({ error: "The control plane could not do this.", code: "internal_error" });
  const headers = { "x-request-id": "req-of-the-test" };
  for (const [path, call, row] of [
    ["/activity", "/v1/activity", page.getByRole("main").getByRole("listitem").first()],
    ["/access", "/v1/api-tokens", page.getByRole("table", { name: "API tokens" })],
  ] as const) {
    const pattern = (url: URL) => url.pathname === call;
    // Other changes reload the list too, so requests fail until the click on Try again.
    const isAsked = () => page.evaluate<boolean>("window.asked === true").catch(() => false);
    await page.route(pattern, async (route) =>
      (await isAsked()) ? route.continue() : route.fulfill({ status: 500, body, headers }),
    );
    await faults.during([new RegExp(`^500 ${call}$`)], async () => {
      await page.goto(at(path));
      await page.getByRole("alert").getByText("Request req-of-the-test").waitFor();
      await page.evaluate(
        "document.addEventListener('click', () => (window.asked = true), { capture: true, once: true })",
      );
      await page.getByRole("alert").getByRole("button", { name: "Try again" }).click();
      await row.waitFor();
    });
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.unroute(pattern);
  }
});

test("the account page shows the session's usage and request limits", { skip }, async () => {
  await page.goto(at("/account"));
  const { body } = await platform.call<{ limits: Record<string, number> }>("GET", "/v1/capabilities");
  for (const [label, name] of [
    ["Reads a minute", "reads_per_minute"],
    ["Changes a minute", "writes_per_minute"],
  ] as const) {
    const value = page.locator("dl > div").filter({ hasText: label }).locator("dd");
    await value.getByText((body.limits[name] ?? 0).toLocaleString("en"), { exact: true }).waitFor();
  }
  await page.getByText(/^\d+ of \d+$/).waitFor();
});

test("the choice of a light, dark or system theme survives a reload", { skip }, async () => {
  await page.goto(at("/account"));
  await page.emulateMedia({ colorScheme: "light" });
  for (const [theme, scheme, colours] of [
    ["light", "dark", "light"],
    ["dark", "light", "dark"],
    ["system", "dark", "dark"],
    ["system", "light", "light"],
  ] as const) {
    const button = page.getByRole("button", { name: /^Theme: / });
    while ((await button.getAttribute("aria-label")) !== `Theme: ${theme}`) await button.click();
    await page.emulateMedia({ colorScheme: scheme });
    await hasColours(page, colours);
    await page.reload();
    await page.getByRole("button", { name: `Theme: ${theme}` }).waitFor();
    await hasColours(page, colours);
  }
});

test("the header's project search opens the same page of another project", { skip }, async () => {
  await page.goto(at("/projects/demo/variables"));
  await heading("Variables").waitFor();
  await press("Switch project");
  const find = page.getByRole("combobox", { name: "Switch project" });
  await find.fill("meanw");
  await page.getByRole("option", { name: /^meanwhile\s*Empty/, selected: true }).waitFor();
  await looksRight(page);
  await find.press("Enter");
  await page.waitForURL(at("/projects/meanwhile/variables"));
  await page.goBack();
  await page
    .getByRole("status")
    .getByText(/@[0-9a-f]{8}$/)
    .waitFor();
});

test("the header's actions are those of the project alone, and each opens its form", { skip }, async () => {
  await page.goto(at("/projects/demo/variables"));
  await press("Actions");
  const find = page.getByRole("combobox", { name: "Actions" });
  await page.getByRole("option", { name: /^Deploy again …/, selected: true }).waitFor();
  await find.fill("overview");
  await page.getByText("Nothing is called that.").waitFor();
  await find.fill("deploy again");
  await page.getByRole("option", { name: /^Deploy again …/, selected: true }).waitFor();
  await find.press("Enter");
  await page.getByRole("dialog", { name: "demo: Deploy again" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("signing out everywhere revokes the session's token", { skip }, async () => {
  const made = await platform.call("POST", "/v1/api-tokens", { name: "roaming" });
  const visitor = await visitorWith(String(made.body["token"]));
  const other = await visitorWith(String(made.body["token"]));
  await headingOf(other, "Overview").waitFor();
  await visitor.goto(at("/account"));
  await visitor.getByRole("button", { name: "Sign out everywhere" }).click();
  await visitor.getByLabel("Type roaming to confirm").fill("roaming");
  await faults.during([/^401 \/v1\//], async () => {
    await visitor.getByRole("button", { name: "Revoke the token" }).click();
    for (const each of [visitor, other]) await headingOf(each, "Your session has ended").waitFor();
    // A request in flight may get its 401 later, so the remaining steps run inside `during`, too.
    await visitor.getByRole("button", { name: "Sign in again" }).click();
    await headingOf(visitor, "Sign in to Berth").waitFor();
    await visitor.reload();
    await headingOf(visitor, "Sign in to Berth").waitFor();
    for (const each of [visitor, other]) await each.context().close();
  });
});

test("a revoked token and an unreachable platform each have their own screen", { skip }, async () => {
  const made = await platform.call("POST", "/v1/api-tokens", { name: "short" });
  const visitor = await visitorWith(String(made.body["token"]));
  await headingOf(visitor, "Overview").waitFor();
  const lost = visitor.getByText("The platform does not answer; what is shown may be old.");
  await faults.during([/^ERR_FAILED \/v1\//], async () => {
    await visitor.route("**/v1/**", (route) => route.abort());
    await visitor.getByRole("link", { name: "Activity" }).click();
    await lost.waitFor();
    await visitor.unroute("**/v1/**");
    await lost.waitFor({ state: "detached" });
  });
  // Go offline before the browser has loaded the script of the Access page.
  await faults.during([/^ERR_INTERNET_DISCONNECTED \/(?:$|v1\/|assets\/)/], async (haveCome) => {
    await visitor.context().setOffline(true);
    await visitor.getByRole("link", { name: "Access" }).click();
    await haveCome();
    await visitor.context().setOffline(false);
    await headingOf(visitor, "Access").waitFor();
    await lost.waitFor({ state: "detached" });
  });
  // The page reacts without a click because its stream of changes ends.
  await faults.during([/^401 \/v1\//], async () => {
    await platform.call("DELETE", `/v1/api-tokens/${String(made.body["id"])}`);
    await headingOf(visitor, "Your session has ended").waitFor();
    await looksRight(visitor);
    await visitor.getByRole("button", { name: "Sign in again" }).click();
    await headingOf(visitor, "Sign in to Berth").waitFor();
  });
  await faults.during([/^ERR_FAILED \/session\/resume$/], async () => {
    await visitor.route("**/session/resume", (route) => route.abort());
    await visitor.goto(at("/"));
    await headingOf(visitor, "The platform does not answer").waitFor();
  });
  await looksRight(visitor);
  await visitor.unroute("**/session/resume");
  await visitor.getByRole("button", { name: "Try again" }).click();
  await headingOf(visitor, "Sign in to Berth").waitFor();
  await visitor.context().close();
});

/** The owner approves what an agent asks for; the browser signs the decision. */
async function signsDecision(owner: Page): Promise<void> {
  const made = await platform.call("POST", "/v1/api-tokens", { name: "asker", approval_mode: true });
  const body = JSON.stringify({ name: "wanted" });
  const headers = { authorization: `Bearer ${String(made.body["token"])}`, "content-type": "application/json" };
  const asked = await fetch(`${platform.api}/v1/api-tokens`, { method: "POST", headers, body });
  const { approval } = (await asked.json()) as { approval: { id: string } };
  await owner.goto(new URL(`/session/decide/${approval.id}`, owner.url()).href);
  await owner.getByRole("button", { name: "Approve" }).click();
  await headingOf(owner, "Approved").waitFor();
}

/** Lets the platform ask once for a proof that the person is there; the page then sends the same again. */
async function wantsProof(person: Page, path: string, act: () => Promise<void>): Promise<void> {
  const sent: string[] = [];
  await person.route(path, async (route) => {
    if (route.request().method() !== "POST") return route.fallback();
    sent.push(route.request().postData() ?? "");
    const refusal = { error: "Sign in again.", code: "fresh_sign_in_required" };
    return sent.length === 1 ? route.fulfill({ status: 403, json: refusal }) : route.fallback();
  });
  await faults.during([/^403 \/v1\//], async () => {
    await act();
    await eventually(async () => sent.length === 2, "the form is sent again");
  });
  assert.equal(sent[0], sent[1]);
  await person.unroute(path);
}

/** The operator disables an account of another organization, enables it, and makes its link. */
async function disablesAndRescues(operator: Page, person: Page): Promise<void> {
  const made = await platform.call("POST", "/v1/orgs", { slug: "lodge", name: "Lodge" });
  const headers = {
    authorization: `Bearer ${String(made.body["owner_token"])}`,
    "content-type": "application/json",
  };
  const invited = await fetch(`${platform.api}/v1/invites`, { method: "POST", headers, body: '{"role":"owner"}' });
  await person.goto(((await invited.json()) as { url: string }).url);
  await person.getByLabel("Your name").fill("Lin");
  await person.getByRole("button", { name: "Create a passkey and join" }).click();
  await headingOf(person, "Overview").waitFor();
  await operator.goto(new URL("/operator/organizations", operator.url()).href);
  const row = operator.getByRole("row", { name: /Lin.*lodge/ });
  await row.getByText("Active").waitFor();
  await looksRight(operator);
  const dialog = operator.getByRole("dialog");
  const disable = row.getByRole("button", { name: "Disable" });
  await faults.during([/^401 /], async () => {
    await disable.click();
    await dialog.getByLabel("Type Lin to confirm").fill("Lin");
    await dialog.getByRole("button", { name: "Disable", exact: true }).click();
    await row.getByText("Disabled").waitFor();
    await headingOf(person, "Your session has ended").waitFor();
  });
  await row.getByRole("button", { name: "Enable", exact: true }).click();
  await row.getByText("Active").waitFor();
  await row.getByRole("button", { name: "Sign-in link" }).click();
  await dialog.getByRole("button", { name: "Make the link" }).click();
  const link = await dialog.locator("code").innerText();
  await operator.getByRole("button", { name: "I have it" }).click();
  await person.goto(link);
  await person.getByRole("button", { name: "Sign in as Lin" }).click();
  await headingOf(person, "Overview").waitFor();
}

test("an owner makes an account with a passkey, invites a colleague, changes and removes them", { skip }, async () => {
  const owner = await withPasskeys(await visitorWith(platform.token));
  await headingOf(owner, "Overview").waitFor();
  await owner.goto(at("/access"));
  await owner.getByRole("button", { name: "Make an account for yourself" }).click();
  await headingOf(owner, "Join Main").waitFor();
  await looksRight(owner);
  await owner.getByLabel("Your name").fill("Grace");
  await owner.getByRole("button", { name: "Create a passkey and join" }).click();
  await headingOf(owner, "Overview").waitFor();
  await owner.getByRole("button", { name: "Sign out" }).click();
  await owner.getByRole("button", { name: "Sign in with a passkey" }).click();
  await headingOf(owner, "Overview").waitFor();
  await owner.goto(new URL("/account", owner.url()).href);
  await owner.getByRole("heading", { name: "Where you are signed in" }).waitFor();
  await owner.getByRole("button", { name: "Add a passkey" }).click();
  await owner.getByRole("dialog").getByLabel("Name").fill("Phone");
  await owner.getByRole("button", { name: "Create it" }).click();
  await owner.getByRole("table", { name: "Passkeys" }).getByText("Phone").waitFor();
  await looksRight(owner);
  await signsDecision(owner);
  await owner.goto(new URL("/access", owner.url()).href);
  await owner.getByRole("button", { name: "Invite a person" }).click();
  const dialog = owner.getByRole("dialog");
  await dialog.getByLabel("E-mail address (optional)").fill("ada@example.com");
  await dialog.getByRole("button", { name: "Invite", exact: true }).click();
  await dialog.getByText("The link was mailed to ada@example.com.").waitFor();
  await owner.getByRole("button", { name: "Close" }).click();
  mailbox.state.refuses = true;
  await owner.getByRole("button", { name: "Invite a person" }).click();
  await dialog.getByLabel("E-mail address (optional)").fill("eve@example.com");
  await wantsProof(owner, "**/v1/invites", () => dialog.getByRole("button", { name: "Invite", exact: true }).click());
  await dialog.getByText(/^No mail could be sent: .*Send this link to one person\.$/).waitFor();
  await looksRight(owner);
  await owner.getByRole("button", { name: "I have it" }).click();
  mailbox.state.refuses = false;
  const link = mailbox.mails.map(({ text }) => /\S+\/join#\S+/.exec(text)?.[0]).find(Boolean) ?? "";
  await owner.getByRole("table", { name: "Open invitations" }).getByText("ada@example.com").waitFor();
  await looksRight(owner);
  const colleague = await withPasskeys(await openPage());
  await colleague.goto(link);
  await colleague.getByText("Grace invites you as a member.").waitFor();
  await colleague.getByLabel("Your name").fill("Ada");
  await colleague.getByRole("button", { name: "Create a passkey and join" }).click();
  await headingOf(colleague, "Overview").waitFor();
  await faults.during([/^401 \/session\/invitation$/], async () => {
    const late = await openPage();
    await late.goto(link);
    await headingOf(late, "This invitation does not work").waitFor();
    await looksRight(late);
    await late.context().close();
  });
  await owner.reload();
  await owner.getByRole("button", { name: "Change Ada" }).click();
  await dialog.getByRole("button", { name: "owner" }).click();
  await dialog.getByRole("button", { name: "Change", exact: true }).click();
  await owner.getByRole("row", { name: /Ada.*owner/ }).waitFor();
  await owner.getByRole("button", { name: "Remove Ada" }).click();
  await dialog.getByLabel("Type Ada to confirm").fill("Ada");
  await faults.during([/^401 /], async () => {
    await dialog.getByRole("button", { name: "Remove", exact: true }).click();
    await owner.getByRole("row", { name: /Ada/ }).waitFor({ state: "detached" });
    await headingOf(colleague, "Your session has ended").waitFor();
    await colleague.getByRole("button", { name: "Sign in again" }).click();
    await colleague.getByRole("button", { name: "Sign in with a passkey" }).click();
    await colleague.getByText("You are in no organization any more.").waitFor();
  });
  await disablesAndRescues(owner, colleague);
  await colleague.context().close();
  await owner.context().close();
});

test("a sign-in leads to no page but the platform's own", { skip }, async () => {
  for (const next of [
    "//evil.example",
    "/\\evil.example",
    "https://evil.example/",
    "/session/authorize?\t",
    "/session/device//",
  ]) {
    const visitor = await openPage();
    await visitor.goto(at(`/sign-in?next=${encodeURIComponent(next)}`));
    await visitor.getByLabel("API token").fill(platform.token);
    await visitor.getByRole("button", { name: "Sign in", exact: true }).click();
    await headingOf(visitor, "Overview").waitFor();
    assert.equal(new URL(visitor.url()).origin, new URL(platform.api).origin);
    await visitor.context().close();
  }
});

test(
  "a person who is not signed in signs in first, types a command line's code, and disconnects it",
  { skip },
  async () => {
    const form = { method: "POST", body: new URLSearchParams({ client_id: "berth-cli", device_name: "laptop" }) };
    const started = (await (await fetch(at("/oauth/device"), form)).json()) as Record<string, string>;
    const visitor = await openPage();
    await visitor.goto(started["verification_uri"] ?? "");
    await headingOf(visitor, "Sign in to Berth").waitFor();
    await visitor.getByLabel("API token").fill(platform.token);
    await visitor.getByRole("button", { name: "Sign in", exact: true }).click();
    await headingOf(visitor, "Log in a command line").waitFor();
    await looksRight(visitor);
    await visitor.getByLabel("Code").fill(started["user_code"] ?? "");
    await visitor.getByRole("button", { name: "Continue" }).click();
    await headingOf(visitor, "Connect berth on laptop?").waitFor();
    await looksRight(visitor);
    await visitor.getByRole("button", { name: "Allow" }).click();
    await headingOf(visitor, "Connected").waitFor();
    const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
    const asked = new URLSearchParams({
      grant_type,
      client_id: "berth-cli",
      device_code: started["device_code"] ?? "",
    });
    const fetched = await fetch(at("/oauth/token"), { method: "POST", body: asked });
    const token = ((await fetched.json()) as Record<string, string>)["access_token"] ?? "";
    assert.equal(await statusOf(token, "/v1/me"), 200);
    await visitor.goto(new URL("/access", visitor.url()).href);
    await visitor.getByRole("button", { name: "Disconnect berth on laptop" }).click();
    const dialog = visitor.getByRole("dialog");
    await dialog.getByLabel("Type berth on laptop to confirm").fill("berth on laptop");
    await dialog.getByRole("button", { name: "Disconnect" }).click();
    await visitor.getByText("No program is connected").waitFor();
    assert.equal(await statusOf(token, "/v1/me"), 401);
    await visitor.context().close();
  },
);
