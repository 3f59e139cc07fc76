import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import type { Page } from "playwright-core";
import { eventually } from "../support/eventually.ts";
import { looksRightEverywhere, screens } from "./dashboard-page.ts";
import { at } from "./dashboard-stage.ts";

const slowAnswerMs = 100;

/** Checks that each of these pages, loaded on a phone or a wide screen in turn, does not shift meanwhile and looks right everywhere. */
export async function lookRight(visited: Page, paths: readonly string[]): Promise<void> {
  // Slow answers show each shift that a fast machine hides.
  let unanswered = 0;
  await visited.route("**/v1/**", async (route) => {
    unanswered += 1;
    await setTimeout(slowAnswerMs);
    const answer = await route.fetch().catch(() => undefined);
    // The page may have been left meanwhile.
    if (answer !== undefined) await route.fulfill({ response: answer }).catch(() => {});
    unanswered -= 1;
  });
  // Live updates, such as a cron run, would shift the layout legitimately, so block the stream of changes.
  await visited.route("**/v1/activity/changes?*", () => {});
  try {
    for (const [index, path] of paths.entries()) {
      await visited.setViewportSize(index % 2 === 0 ? screens.phone : screens.wide);
      await visited.goto(at(path));
      await visited.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
      await visited.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
      // An answer may make the page ask again.
      await eventually(async () => unanswered === 0 && (await isIdle(visited)) && unanswered === 0, "all is answered");
      const [score, moved] = (await visited.evaluate("[window.shiftScore, window.shifted]")) as [number, string[]];
      assert.ok(score < 0.01, `${path} moved by ${score} while it loaded: ${moved.join("\n")}`);
      await looksRightEverywhere(visited);
    }
  } finally {
    await visited.unrouteAll({ behavior: "ignoreErrors" });
  }
}

/** Waits until the page has drawn twice, so that it has shown what it received. */
export const isIdle = (visited: Page) =>
  visited.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))");

export const logPage = "/projects/$slug/builds/$id";

/** A page of each route. Tests replace names in angle brackets by ids from the platform. */
export const pages: Readonly<Record<string, string>> = {
  "/": "/",
  "/approvals": "/approvals",
  "/activity": "/activity",
  "/access": "/access",
  "/account": "/account",
  "/api": "/api",
  "/operator": "/operator",
  "/operator/organizations": "/operator/organizations",
  "/operator/status": "/operator/status?all=true",
  "/projects/$slug": "/projects/demo",
  "/projects/$slug/deployments": "/projects/demo/deployments",
  "/projects/$slug/compare": "/projects/demo/compare?from=1&to=2",
  "/projects/$slug/files": "/projects/demo/files",
  [logPage]: "/projects/demo/builds/<build>",
  "/projects/$slug/logs": "/projects/demo/logs",
  "/projects/$slug/requests": "/projects/demo/requests?by=path",
  "/projects/$slug/metrics": "/projects/demo/metrics",
  "/projects/$slug/processes": "/projects/demo/processes",
  "/projects/$slug/terminal": "/projects/demo/terminal",
  "/projects/$slug/runs/$number": "/projects/demo/runs/1",
  "/projects/$slug/variables": "/projects/demo/variables",
  "/projects/$slug/domains": "/projects/demo/domains",
  "/projects/$slug/previews": "/projects/demo/previews",
  "/projects/$slug/cron": "/projects/demo/cron",
  "/projects/$slug/cron/$name": "/projects/demo/cron/clean-up",
  "/projects/$slug/database": "/projects/demo/database",
  "/projects/$slug/database/$schema/$table": "/projects/demo/database/public/orders",
  "/projects/$slug/backups": "/projects/demo/backups",
  "/projects/$slug/backups/$id": "/projects/demo/backups/<backup>",
  "/projects/$slug/storage": "/projects/demo/storage",
  "/projects/$slug/timeline": "/projects/demo/timeline",
  "/projects/$slug/settings": "/projects/demo/settings",
};
