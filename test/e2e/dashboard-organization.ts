import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer } from "../../src/contract/client.ts";
import { route as rowOf } from "../../src/contract/routes.ts";
import { webhookFormats } from "../../src/contract/webhooks.ts";
import { eventually } from "../support/eventually.ts";
import { script } from "./dashboard-app.ts";
import { looksRight, screens } from "./dashboard-page.ts";
import { at, context, faults, mailbox, page, platform, press, skip, visitorWith } from "./dashboard-stage.ts";

test("a broken stream of changes reconnects, and the page shows what it missed", { skip }, async () => {
  await page.goto(at("/"));
  await page.getByRole("link", { name: "demo" }).first().waitFor();
  await faults.during([/^ERR_INTERNET_DISCONNECTED \/v1\//], async (haveCome) => {
    await context.setOffline(true);
    await platform.call("POST", "/v1/projects", { slug: "meanwhile", name: script });
    await haveCome();
    await context.setOffline(false);
    await page
      .getByRole("link", { name: /meanwhile/ })
      .first()
      .waitFor();
  });
});

test("a deletion in approval mode waits for a person, and the page shows the request", { skip }, async () => {
  const made = await platform.call("POST", "/v1/api-tokens", { name: "agent", approval_mode: true });
  const asked = await fetch(at("/v1/projects/meanwhile"), {
    method: "DELETE",
    headers: { authorization: `Bearer ${String(made.body["token"])}` },
  });
  assert.equal(asked.status, 403);
  await page.goto(at("/approvals"));
  await page.getByText("Delete the project meanwhile").waitFor();
  await page.getByText("The request itself").click();
  await page.getByText("DELETE /v1/projects/meanwhile", { exact: true }).waitFor();
  await looksRight(page);
  // The decision page is not part of the dashboard. It shows times in the reader's time zone.
  await page.getByRole("link", { name: "Review: Delete the project meanwhile" }).click();
  await page.getByText("It stops serving at once.").waitFor();
  await page.locator("time[title$=UTC]").first().waitFor();
  assert.match(await page.locator("time").first().innerText(), /\(your time\)$/);
  await looksRight(page);
  await press("Deny");
  await page.getByRole("heading", { name: "Denied" }).waitFor();
  await page.getByRole("link", { name: "Back to the approvals" }).click();
  await page.getByText(/denied now|denied \d+ s ago/).waitFor();
  await page.getByLabel("State", { exact: true }).selectOption("pending");
  await page.getByText("No request with the state “Waiting”").waitFor();
});

test("actions that a token does not permit are disabled and show the reason", { skip }, async () => {
  const scopes = ["projects:read", "data:read", "data:write", "tokens:read", "cron:read"];
  const made = await platform.call("POST", "/v1/api-tokens", { name: "intern", role: "member", scopes });
  const looks = [
    ["/projects/demo/database/public/orders", "Delete row 1", "Only an owner of the organization may do this."],
    ["/access", "Revoke intern", /^Your token lacks the scope tokens:write;/],
    ["/projects/demo/cron", "Delete clean-up", /^Your token lacks the scope cron:write;/],
  ] as const;
  // Expected 403s: the stream of changes, and the other lists on the page of tokens.
  await faults.during([/^403 \/v1\/activity\/changes$/, /^403 \/v1\/(?:ssh-keys|webhooks|registries)$/], async () => {
    const visitor = await visitorWith(String(made.body["token"]));
    await visitor.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    for (const [path, name, why] of looks) {
      await visitor.goto(at(path));
      const button = visitor.getByRole("button", { name, exact: true });
      await button.and(visitor.locator("[aria-disabled=true]")).waitFor();
      assert.match((await button.getAttribute("title")) ?? "", new RegExp(why));
      await button.press("Enter");
      assert.equal(await visitor.getByRole("dialog").count(), 0);
    }
    await visitor.context().close();
  });
});

test(
  "a suspended organization sees that it is suspended, and works again once the operator enables it",
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
    await faults.during([/^403 \/v1\//], async () => {
      await press("Suspend");
      await page.getByLabel("Type harbour to confirm").fill("harbour");
      await page.getByRole("dialog").getByRole("button", { name: "Suspend" }).click();
      await page.getByRole("cell", { name: "Suspended" }).waitFor();
      // The page reacts without a click because its stream of changes ends.
      await visitor.getByRole("heading", { name: "This organization is suspended" }).waitFor();
      await looksRight(visitor);
      await press("Enable");
      await page.getByRole("cell", { name: "Suspended" }).waitFor({ state: "detached" });
    });
    await visitor.goto(at("/"));
    await visitor.getByText("Deploy your first application").waitFor();
    await visitor.context().close();
  },
);

test("the operator backs the platform up, and upgrades it once there is a newer version", { skip }, async () => {
  // This platform is a clone, which has no releases, so the test fakes the responses about versions.
  const sent: unknown[] = [];
  const versions = { version: "0.1.0", commit: null, newer: "0.2.0", unfinalized: [], upgrade: null as unknown };
  const installed = [{ version: "0.1.0", commit: null, current: true, processes: 3 }];
  const answer = () => ({ json: rowOf("platform.versions").result?.parse({ ...versions, installed }) });
  const drill = { organization: "main", project: "demo", status: "mismatch", problem: "orders has no rows" };
  await page.route("**/v1/platform/overview", async (route) => {
    const json = (await (await route.fetch()).json()) as Answer<"platform.overview">;
    const last_drills = [{ ...drill, created_at: "2026-01-02T03:04:05.678Z" }];
    const faked = { ...json, commit: "0123456789abcdef0123456789abcdef01234567", last_drills };
    return route.fulfill({ json: rowOf("platform.overview").result?.parse(faked) });
  });
  await page.route("**/v1/platform/versions", async (route) => route.fulfill(answer()));
  await page.route("**/v1/platform/upgrade", async (route) => {
    sent.push(route.request().postDataJSON());
    const [status, reason] = ["went_back", "Berth 0.2.0 was not ready."];
    versions.upgrade = {
      from: "0.1.0",
      to: "0.2.0",
      status,
      reason,
      steps: [{ step: "back", at: "2026-01-02T03:04:05.678Z" }],
    };
    return route.fulfill(answer());
  });
  await page.goto(at("/operator"));
  const need = page.getByRole("listitem").filter({ hasText: "Backup of the platform" });
  await need.getByText("There is none yet.").waitFor();
  await page.getByText(/^\S+ \(01234567\)/).waitFor();
  const drilled = page.getByRole("table", { name: "Last drills" }).getByRole("row", { name: /main\/demo/ });
  await drilled.getByText("orders has no rows").waitFor();
  await page.getByRole("heading", { name: "Requests at the edges" }).waitFor();
  await press("7d");
  await page.getByRole("button", { name: "7d", pressed: true }).waitFor();
  await press("Back up the platform");
  const made = page.getByRole("table", { name: "Backups of the platform" }).getByRole("row", { name: /pbk_/ });
  await made.getByText("Completed").waitFor();
  await need.waitFor({ state: "detached" });
  await press("Upgrade to 0.2.0");
  await page.getByRole("dialog").getByRole("button", { name: "Upgrade", exact: true }).click();
  await page.getByText("Went back").waitFor();
  await page.getByText("Berth 0.2.0 was not ready.").waitFor();
  assert.deepEqual(sent, [{ source: "0.2.0" }]);
  await looksRight(page);
  await page.unrouteAll({ behavior: "wait" });
});

test("the operator drains and removes a machine of a swarm after seeing what will move", { skip }, async () => {
  // This platform has no swarm, so the test fakes the responses about machines.
  const machine = { role: "worker", state: "ready", guarded: true, cpus: 4, memory_bytes: 8e9, version: "20.10.24" };
  const node = { ...machine, id: "n2", name: "node-2", address: "192.0.2.12", takes_replicas: true, replicas: 3 };
  const first = { ...node, id: "n1", name: script, address: "192.0.2.11", role: "manager" };
  const machines = [first, node];
  const detail = { projects: ["main/demo"] };
  const sent: string[] = [];
  await page.route("**/v1/platform/machines**", async (route) => {
    const request = route.request();
    if (request.method() === "GET")
      return route.fulfill({ json: rowOf("platform.machines").result?.parse({ machines }) });
    if (request.url().includes("dry_run")) return route.fulfill({ json: { would_change: { detail } } });
    sent.push(`${request.method()} ${new URL(request.url()).pathname} ${request.postData() ?? ""}`);
    if (request.method() === "POST") return route.fulfill({ json: { script: "#!/bin/sh\ndocker swarm join\n" } });
    if (request.method() === "DELETE") machines.pop();
    else Object.assign(node, { takes_replicas: false, replicas: 0 });
    return route.fulfill(request.method() === "DELETE" ? { status: 204 } : { json: { moving: 2 } });
  });
  await page.goto(at("/operator"));
  const row = page.getByRole("row", { name: /node-2/ });
  const dialog = page.getByRole("dialog");
  await row.getByText("Ready").waitFor();
  assert.ok(await row.getByRole("button", { name: "Remove" }).isDisabled());
  await row.getByRole("button", { name: "Drain", exact: true }).click();
  await dialog.getByText(/^3 replicas of node-2 start on other machines/).waitFor();
  await looksRight(page);
  await dialog.getByRole("button", { name: "Drain", exact: true }).click();
  await row.getByText("Drained").waitFor();
  await row.getByRole("button", { name: "Remove" }).click();
  await dialog.getByRole("listitem").getByText("main/demo").waitFor();
  await page.getByLabel("Type node-2 to confirm").fill("node-2");
  await dialog.getByRole("button", { name: "Remove" }).click();
  await row.waitFor({ state: "detached" });
  await press("Add a machine");
  await press("Show the script");
  await dialog.getByText("docker swarm join").waitFor();
  await looksRight(page);
  const path = "/v1/platform/machines";
  assert.deepEqual(sent, [`PUT ${path}/n2 {"takes_replicas":false}`, `DELETE ${path}/n2 `, `POST ${path} `]);
  await page.unrouteAll({ behavior: "wait" });
});

test("while a list is scrolled down, new entries wait behind a button", { skip }, async () => {
  await page.setViewportSize(screens.phone);
  await page.goto(at("/activity"));
  const entryOf = (project: string) => page.getByRole("listitem").filter({ hasText: `Project created${project}` });
  await entryOf("meanwhile").waitFor();
  await page.mouse.wheel(0, 400);
  await eventually(() => page.evaluate("scrollY > 300"), "the page is scrolled");
  await platform.call("POST", "/v1/projects", { slug: "later", name: "Later" });
  const newer = page.getByRole("button", { name: /newer entr/ });
  await newer.waitFor();
  const entry = entryOf("later");
  assert.equal(await entry.count(), 0);
  await looksRight(page);
  await newer.click();
  await entry.waitFor();
  await newer.waitFor({ state: "detached" });
  await page.getByLabel("Kind", { exact: true }).selectOption("access");
  await page.waitForURL(/\?kind=access$/);
  await entry.waitFor({ state: "detached" });
  await page
    .getByRole("listitem")
    .filter({ hasText: /Token .* created/ })
    .first()
    .waitFor();
  // Repeat with a table in a project, where the page header is taller.
  await page.setViewportSize({ ...screens.usual, height: 300 });
  await page.goto(at("/projects/demo/processes"));
  const commands = page.getByRole("table", { name: "One-off commands" });
  await commands.waitFor();
  await page.mouse.wheel(0, 400);
  await eventually(() => page.evaluate("scrollY > 100"), "the page is scrolled");
  await platform.call("POST", "/v1/projects/demo/runs", { command: "echo newer" });
  await newer.waitFor();
  assert.equal(await commands.getByText("echo newer").count(), 0);
  await newer.click();
  await commands.getByText("echo newer").waitFor();
  await page.setViewportSize(screens.usual);
});

test("an e-mail address receives events once it is confirmed with the mailed code", { skip }, async () => {
  await page.goto(at("/access"));
  await press("Add a channel");
  const dialog = page.getByRole("dialog");
  const formats = ["json", "slack", "discord", "telegram", "ntfy", "teams", "email"] as const;
  assert.deepEqual(formats.toSorted(), webhookFormats.toSorted());
  const places = [
    /^https:\/\/example/,
    /slack\.com/,
    /discord\.com/,
    /telegram\.org/,
    /ntfy\.sh/,
    /azure\.com/,
    /@example/,
  ];
  for (const [index, format] of formats.entries()) {
    await dialog.getByLabel("Channel", { exact: true }).selectOption(format);
    await dialog.getByLabel(format === "email" ? "E-mail address" : "URL", { exact: true }).waitFor();
    await dialog.getByPlaceholder(places[index] ?? "").waitFor();
  }
  await dialog.getByLabel("Name", { exact: true }).fill("mailbox");
  await dialog.getByLabel("E-mail address", { exact: true }).fill("ops@example.com");
  await dialog.getByRole("group", { name: "Events to send" }).getByLabel("Approvals").waitFor();
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
  await press("Deliveries of mailbox");
  await press("Send a test");
  await dialog.getByRole("row", { name: /test/ }).getByText("delivered", { exact: true }).waitFor();
  await looksRight(page);
  await page.keyboard.press("Escape");
});
