import assert from "node:assert/strict";
import { after, test } from "node:test";
import { chromium } from "playwright-core";
import { noBrowser } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { client, startIssuer } from "../support/issuer.ts";
import { startPlatform } from "./platform.ts";

test(
  "a person joins, proves to be there and signs in by a provider in the browser; a stranger learns whom to ask",
  { skip: noBrowser ?? false },
  async () => {
    const platform = await startPlatform({ BERTH_OUTGOING_NETWORKS: "127.0.0.1/32" });
    after(() => platform.destroy());
    const issuer = await startIssuer([`http://localhost:${new URL(platform.api).port}/session/oidc/company/callback`]);
    const body = { kind: "oidc", name: "Company", issuer: issuer.url, ...client };
    const set = await platform.call("PUT", "/v1/platform/providers/company", body);
    assert.equal(set.status, 200, JSON.stringify(set.body));
    const invited = await platform.call("POST", "/v1/invites", { role: "owner" });
    const asPage = { headers: { accept: "text/html" } };
    await eventually(async () => (await fetch(platform.api, asPage)).ok, "the dashboard is built");
    // No sandbox starts here, so the browser may share the machine's network, where the issuer is.
    const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
    after(() => browser.close());
    const page = await (await browser.newContext()).newPage();
    const press = (name: string) => page.getByRole("button", { name, exact: true }).first().click();
    const reads = (name: string) => page.getByRole("heading", { name }).waitFor();
    await page.goto(String(invited.body["url"]));
    await press("Join with Company");
    await reads("Overview");
    await page.goto(new URL("/account", page.url()).href);
    await press("Sign in again with Company");
    await page.waitForURL("**/account");
    await page.getByRole("table", { name: "Accounts at providers" }).waitFor();
    await press("Sign out");
    await press("Sign in with Company");
    await reads("Overview");
    issuer.account.id = "stranger";
    await press("Sign out");
    await page.getByRole("button", { name: "Sign in with Company" }).waitFor();
    await page.context().clearCookies();
    await press("Sign in with Company");
    await reads("You are not signed in");
    await page.getByText("No account here. Ask an owner for an invitation.").waitFor();
  },
);
