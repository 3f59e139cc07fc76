import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Result } from "../../src/contract/routes.ts";
import { until } from "../../src/kit/until.ts";
import { liveApp } from "./apps.ts";
import { createApp } from "./platform.ts";
import { inEachWay, startVisitedPlatform, type VisitedPlatform } from "./ways.ts";
import { guardMs } from "../support/eventually.ts";

// Drawn with other operation files: it starts whole platforms, which takes too long for every run.

let platform: VisitedPlatform;
const limits = { timeoutMs: guardMs, atMostMs: 1000 };

type Status = Result<"status.get">;
type Alerts = Result<"alerts.list">;

async function get<T>(path: string): Promise<T> {
  const { status, body } = await platform.call<T>("GET", path);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** Returns the messages in the outbox. The first message creates the folder; files with other endings are drafts. */
function messages(): string[] {
  const outbox = join(platform.dataDir, "outbox");
  if (!existsSync(outbox)) return [];
  const names = readdirSync(outbox).filter((name) => name.endsWith(".txt"));
  return names.toSorted().map((name) => readFileSync(join(outbox, name), "utf8"));
}

inEachWay({ possible: ({ over }) => over === "http" }, (way) => {
  before(async () => {
    platform = await startVisitedPlatform(way, ["crashing"], { BERTH_MONITOR_SECONDS: "1" });
  });
  after(() => platform?.destroy());

  test("all checks of a running platform's own parts are ok", async () => {
    const parts = ["control_database", "edge", "git", "reconcilers", "scheduler", "databases", "backups", "clock"];
    let found: Status["checks"] = [];
    // A check may fail once, while a part starts or the machine is busy.
    const isWell = async () => {
      const { checks } = await get<Status>("/v1/status");
      found = checks.filter(({ check, subject }) => parts.includes(check) && subject === null);
      return (found.length > 0 && found.every(({ status }) => status === "ok")) || undefined;
    };
    await until(isWell, limits);
    assert.deepEqual(
      found.map(({ check, status }) => `${check} ${status}`).toSorted(),
      parts.map((part) => `${part} ok`).toSorted(),
    );
  });

  test("an application that keeps crashing opens one alert, notifies the operator, and a redeploy resolves it", async () => {
    const app = await createApp(platform, "crashing", liveApp({ version: "one" }));
    assert.equal((await app.push()).exitCode, 0);
    const opened = await until(async () => {
      await platform.visit("crashing", "/exit").catch(() => undefined);
      const { alerts } = await get<Alerts>("/v1/alerts");
      return alerts.find(({ check }) => check === "applications");
    }, limits);
    assert.deepEqual([opened?.subject, opened?.severity], ["main/crashing", "critical"]);
    const notice = await until(async () => messages().find((text) => text.includes("critical: applications")), limits);
    assert.match(notice ?? "", /has crashed \d+ times/);
    await app.commit(liveApp({ version: "two" }));
    assert.equal((await app.push()).exitCode, 0);
    const resolved = await until(async () => {
      const { alerts } = await get<Alerts>("/v1/alerts?all=true");
      return alerts.find(({ id, resolved_at }) => id === opened?.id && resolved_at !== null);
    }, limits);
    assert.ok(resolved, "the alert is resolved");
    const ended = await until(async () => messages().find((text) => text.includes("resolved: applications")), limits);
    assert.ok(ended, "the operator is notified that the alert is resolved");
    const overview = await get<Result<"platform.overview">>("/v1/platform/overview");
    assert.equal(overview.most_failing[0]?.project, "crashing");
  });
});
