import assert from "node:assert/strict";
import { test } from "node:test";
import { createApp } from "./platform.ts";
import { looksRight, screens } from "./dashboard-page.ts";
import { at, page, platform, press, skip } from "./dashboard-stage.ts";

test("a preview is pinned as staging and promoted, and the deployments show it", { skip }, async () => {
  const app = await createApp(platform, "staged", { "index.html": "<h1>one</h1>" });
  assert.equal((await app.push()).exitCode, 0);
  const previews = { previews: ["*"] };
  assert.equal((await platform.call("PUT", "/v1/projects/staged/settings", previews)).status, 200);
  await app.commit({ "index.html": "<h1>two</h1>" });
  assert.equal((await app.push("staging")).exitCode, 0);
  await page.goto(at("/projects/staged/previews"));
  await press("Pin staging");
  await page.getByText("pinned", { exact: true }).waitFor();
  await looksRight(page);
  await page.setViewportSize(screens.phone);
  await looksRight(page);
  await page.setViewportSize(screens.usual);
  await press("Comment on staging");
  const comment = page.getByRole("dialog");
  await comment.getByText("berth preview delete staging").waitFor();
  await looksRight(page);
  await comment.getByRole("button", { name: "Close" }).click();
  await press("Promote staging");
  await looksRight(page);
  await page.getByRole("dialog").getByRole("button", { name: "Promote" }).click();
  await page.waitForURL(at("/projects/staged/deployments"));
  await page.getByText("Promote the preview of staging").first().waitFor();
  await page.getByRole("row", { name: /#2/ }).getByText("Live").waitFor();
});

test("two deployments are compared by commits and by the lines of each file", { skip }, async () => {
  await page.goto(at("/projects/staged/compare"));
  await page.getByRole("listitem").filter({ hasText: "Change" }).first().waitFor();
  const file = page.getByRole("listitem").filter({ hasText: "index.html" });
  await file.getByText("+1", { exact: true }).waitFor();
  assert.equal(await page.getByText("+<h1>two</h1>").count(), 0);
  await file.getByText("index.html").click();
  await page.getByText("+<h1>two</h1>").waitFor();
  await page.getByText("-<h1>one</h1>").waitFor();
  await looksRight(page);
  await page.setViewportSize(screens.phone);
  await looksRight(page);
  await page.setViewportSize(screens.usual);
});
