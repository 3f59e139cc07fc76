import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "../support/eventually.ts";
import { script } from "./dashboard-app.ts";
import { looksRight, screens } from "./dashboard-page.ts";
import { at, context, faults, mailbox, page, platform, press, skip, visitorWith } from "./dashboard-stage.ts";

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

test("what happens while one reads further down a list waits behind a button", { skip }, async () => {
  await page.setViewportSize(screens.phone);
  await page.goto(at("/activity"));
  await page.getByText("Project created: meanwhile").waitFor();
  await page.mouse.wheel(0, 400);
  await eventually(() => page.evaluate("scrollY > 300"), "the page is scrolled");
  await platform.call("POST", "/v1/projects", { slug: "later", name: "Later" });
  const newer = page.getByRole("button", { name: /newer entr/ });
  await newer.waitFor();
  const entry = page.getByText("Project created: later");
  assert.equal(await entry.count(), 0);
  await looksRight(page);
  await newer.click();
  await entry.waitFor();
  await newer.waitFor({ state: "detached" });
  await page.setViewportSize(screens.usual);
});

test("signing out everywhere revokes the session's token", { skip }, async () => {
  const made = await platform.call("POST", "/v1/api-tokens", { name: "roaming" });
  const visitor = await visitorWith(String(made.body["token"]));
  await visitor.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await visitor.goto(at("/account"));
  await visitor.getByRole("button", { name: "Sign out everywhere" }).click();
  await visitor.getByLabel("Type roaming to confirm").fill("roaming");
  faults.expect(/401/);
  await visitor.getByRole("button", { name: "Revoke the token" }).click();
  await visitor.getByRole("heading", { name: "Your session has ended" }).waitFor();
  await visitor.context().close();
  faults.expect(undefined);
});

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

test("an e-mail address gets events once it is confirmed with the code that it was mailed", { skip }, async () => {
  await page.goto(at("/access"));
  await press("Add a webhook");
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "email", exact: true }).click();
  await dialog.getByLabel("Name", { exact: true }).fill("mailbox");
  await dialog.getByLabel("Address", { exact: true }).fill("ops@example.com");
  await looksRight(page);
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  const row = page.getByRole("row", { name: /mailbox/ });
  await row.getByRole("cell", { name: "Not confirmed", exact: true }).waitFor();
  const codeIn = () =>
    mailbox.mails.map(({ subject }) => /Confirm this address: (\S+)/.exec(subject)?.[1]).find(Boolean);
  const code = await eventually(codeIn, "the code is mailed");
  await press("Deliveries of mailbox");
  await page.getByLabel("Code that was mailed to the address").fill(code);
  await looksRight(page);
  await press("Confirm");
  await row.getByRole("cell", { name: "On", exact: true }).waitFor();
  await looksRight(page);
});
