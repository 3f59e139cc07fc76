import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import type { Client } from "../../src/contract/client.ts";
import { eventually } from "../support/eventually.ts";
import { script } from "./dashboard-app.ts";
import { looksRight } from "./dashboard-page.ts";
import { at, choose, context, faults, heading, page, platform, press, skip } from "./dashboard-stage.ts";
import { clientOf, upload } from "./dashboard-upload.ts";

// Drawn with other journey files: it starts a whole platform and a browser, which takes too long for every run.

// Pages that show activity: a push, its failure, processes, logs, metrics. All tests share one project, whose state carries over.
const params = { slug: "kiosk" };
const long = "long ".repeat(80).trim();
const files = {
  "package.json": JSON.stringify({
    name: "kiosk",
    private: true,
    scripts: { build: "sleep 2; echo Compiled 214 modules", start: "node server.js" },
  }),
  "server.js": `
console.log(${JSON.stringify(long)});
setInterval(() => console.log("\\u001b[32mtick\\u001b[0m " + ${JSON.stringify(script)}), 400);
require("node:http").createServer((request, response) => response.end("one")).listen(process.env.PORT, process.env.HOST);
`,
};
const withBuild = (build: string) => ({
  ...files,
  "package.json": files["package.json"].replace("sleep 2; echo Compiled 214 modules", build),
});
let client: Client;
const log = () => page.getByRole("log");
const stage = (name: string) =>
  page.getByRole("list", { name: "Stages" }).getByRole("listitem").filter({ hasText: name });

test("a token signs in", { skip }, async () => {
  client = clientOf(platform);
  await client.call("projects.create", { body: { slug: "kiosk", name: "Kiosk" } });
  await page.goto(at("/"));
  await page.getByLabel("API token").fill(platform.token);
  await press("Sign in");
  await heading("Overview").waitFor();
});

test("a running build shows the time of each line, and can be cancelled from its page", { skip }, async () => {
  const id = await upload(client, "kiosk", withBuild("echo Compiling; sleep 3600"));
  await page.goto(at(`/projects/kiosk/builds/${id}`));
  await log()
    .getByText(/Compiling$/)
    .waitFor();
  await stage("Building").getByText("under way").waitFor();
  await stage("Detected").getByText("done").waitFor();
  const [lines, times] = await Promise.all([
    log().locator("[data-index] > div").count(),
    log().locator("time").count(),
  ]);
  assert.ok(times > 0 && times === lines, `${times} times of ${lines} lines`);
  await press("Cancel");
  await page.getByRole("status").getByText("Cancelled").waitFor();
  await page.getByRole("button", { name: "Deploy this commit again" }).waitFor();
  assert.equal((await client.call("builds.get", { params: { id } })).status, "cancelled");
  await looksRight(page);
});

test("a live push shows the duration of its stages", { skip }, async () => {
  const id = await upload(client, "kiosk", files);
  await page.goto(at(`/projects/kiosk/builds/${id}`));
  await heading("Deployment #1").waitFor();
  await stage("Live").getByText("done").waitFor();
  await stage("Building")
    .getByText(/^\d+ (?:ms|s|min)/)
    .waitFor();
  await page.getByRole("main").getByText("Live", { exact: true }).first().waitFor();
  await page.getByRole("link", { name: "Visit" }).waitFor();
  await page.goto(at("/projects/kiosk/timeline"));
  await choose("Kind", "deployment");
  await page.waitForURL(/\?kind=deployment$/);
  await page.getByRole("listitem").filter({ hasText: "Deployment 1 (" }).first().waitFor();
  await page.getByRole("listitem").filter({ hasText: "Project created" }).waitFor({ state: "detached" });
});

test(
  "a failed build shows its stage, a hint, the failing line and the deployment that still serves",
  { skip },
  async () => {
    const id = await upload(client, "kiosk", withBuild("echo no such currency; exit 3"));
    await page.goto(at(`/projects/kiosk/builds/${id}`));
    const failure = page.getByRole("region", { name: "Failure" });
    await failure.getByText("Deployment #1 still serves").waitFor();
    await stage("Building").getByText("failed").waitFor();
    await log().getByText("no such currency").first().waitFor();
    const { failure: reported } = await client.call("builds.get", { params: { id } });
    assert.ok(reported !== null && reported.hint !== "");
    assert.ok(reported.log_tail.some((line) => line.includes("no such currency")));
    assert.ok((await failure.innerText()).includes(reported.summary.replaceAll("`", "")), reported.summary);
    await page.goto(at("/projects/kiosk"));
    await failure.getByText("#1 still serves").waitFor();
    await failure.getByRole("link", { name: "Log and details" }).click();
    await page.waitForURL(at(`/projects/kiosk/builds/${id}`));
  },
);

test("processes are scaled and restarted", { skip }, async () => {
  await page.goto(at("/projects/kiosk/processes"));
  const replica = (number: number) => page.getByRole("row").filter({ hasText: `replica ${number}` });
  await replica(0).getByText("Up").waitFor();
  await press(/^\d+ replicas? of web$/);
  await page.getByLabel("Replicas", { exact: true }).fill("2");
  await press("Scale");
  await replica(1).getByText("Up").waitFor();
  await looksRight(page);
  const since = async () => {
    const { processes } = await client.call("processes.list", { params });
    return processes.flatMap(({ running }) => running.filter(({ state }) => state === "up").map((each) => each.since));
  };
  const before = (await since()).toSorted().at(-1) ?? "";
  await press("Restart web");
  const areNew = async () => {
    const all = await since();
    return all.length === 2 && all.every((each) => each > before);
  };
  await eventually(areNew, "both replicas have been restarted");
  const isUp = async () => (await replica(1).getByText("Up").count()) === 1;
  await eventually(isUp, "the page shows the new replicas alone");
});

test("logs are filtered by source, process, replica and time", { skip }, async () => {
  await page.goto(at("/projects/kiosk/logs"));
  const linesOf = (replica: number) => log().locator(`[title="web, replica ${replica}"]`);
  await linesOf(0).first().waitFor();
  await linesOf(1).first().waitFor();
  await choose("Process", "web.1");
  await page.waitForURL(/process=web&replica=1/);
  await linesOf(0).first().waitFor({ state: "detached" });
  await linesOf(1).first().waitFor();
  await choose("Time", "custom");
  await page.getByLabel("From", { exact: true }).fill("2020-01-01T00:00:00");
  await page.getByLabel("To", { exact: true }).fill("2020-01-01T01:00:00");
  await page.getByText("Nothing was printed in this time.").waitFor();
  await press("Show all processes");
  await page.getByText("Nothing was printed in this time.").waitFor();
  await press("Show the newest lines");
  await linesOf(0).first().waitFor();
  await choose("Source", "build");
  await page.waitForURL(/\?source=build$/);
  await log().getByText("no such currency").first().waitFor();
  assert.equal(await page.getByLabel("Process", { exact: true }).count(), 0);
  await choose("Source", "runtime");
  await linesOf(0).first().waitFor();
});

/** Scrolls the log up and to its end by script, as the page's own scroll does if it ends after the pause. */
async function scrollByItself(): Promise<void> {
  for (const top of ["0", "log.scrollHeight"])
    await page.evaluate(`(async () => {
      const log = document.querySelector("[role=log]");
      log.scrollTop = ${top};
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    })()`);
}

test("a log is paused and followed again, wraps lines, and its download matches the page", { skip }, async () => {
  await press("Pause");
  await page.getByRole("button", { name: /new line/ }).click();
  await page.getByRole("button", { name: "Pause", pressed: true }).waitFor();
  await press("Pause");
  await scrollByItself();
  await page.getByRole("button", { name: /new line/ }).waitFor();
  await log().press("Home");
  await log().getByText(long).first().waitFor();
  const isWide =
    "(() => { const log = document.querySelector('[role=log]'); return log.scrollWidth > log.clientWidth; })()";
  assert.equal(await page.evaluate(isWide), true);
  await press("Wrap long lines");
  await eventually(async () => (await page.evaluate(isWide)) === false, "long lines wrap");
  const saving = page.waitForEvent("download");
  await press("Download");
  const download = await saving;
  assert.equal(download.suggestedFilename(), "kiosk-runtime.log");
  const saved = (await readFile(await download.path(), "utf8")).trimEnd().split("\n");
  for (const line of saved) assert.match(line, /^\d{4}-\d\d-\d\dT[\d:.]+Z web\.[01] ./);
  assert.ok(saved.some((line) => line.endsWith(` ${long}`)));
  assert.ok(saved.some((line) => line.includes(script)));
  const { lines } = await client.call("logs.list", {
    params,
    query: { limit: 5000, until: saved.at(-1)?.slice(0, 24) },
  });
  const known = lines.map(({ at: time, process, replica, text }) => `${time} ${process}.${replica} ${text}`);
  assert.deepEqual(saved.slice(0, known.length), known);
});

test("metrics show a range and its deployments, and can be zoomed and read with the keyboard", { skip }, async () => {
  await page.goto(at("/projects/kiosk/metrics"));
  const chart = page.getByRole("slider", { name: /^Requests/ });
  await chart.waitFor();
  const ranges = page.getByRole("group", { name: "Range" });
  const points = async () => /^(A point is [^.]+)\./.exec(await page.getByText(/^A point is /).innerText())?.[1];
  let shown = await eventually(points, "the chart shows the range");
  for (const range of ["24h", "7d", "1h"]) {
    await ranges.getByRole("button", { name: range }).click();
    await page.waitForURL(new RegExp(`range=${range}`));
    const another = async () => {
      const now = await points();
      return now !== shown && now;
    };
    shown = await eventually(another, "the chart shows the points of another range");
  }
  const markers = page.locator("[data-hover]", { hasText: "#1 live" });
  const findsDeployment = async () => {
    const box = await page.locator("main .u-over").first().boundingBox();
    for (let x = (box?.width ?? 0) - 1; box !== null && x > 0; x -= 6) {
      await page.mouse.move(box.x + x, box.y + box.height / 2);
      if ((await markers.count()) > 0) return true;
    }
    return false;
  };
  await eventually(findsDeployment, "the chart marks the deployment");
  await page.mouse.move(0, 0);
  const spoken = () => chart.getAttribute("aria-valuetext");
  await chart.focus();
  await page.keyboard.press("Home");
  const first = await spoken();
  assert.match(first ?? "", /: 2xx, 3xx .*, 4xx .*, 5xx /);
  await page.keyboard.press("ArrowRight");
  await eventually(async () => (await spoken()) !== first, "the page announces the next point");
  await page.keyboard.press("+");
  await page.waitForURL(/[?&]from=\d+&to=\d+/);
  await page.keyboard.press("Escape");
  await page.waitForURL((url) => !url.searchParams.has("from"));
  await page.keyboard.press("+");
  await page.waitForURL(/[?&]from=\d+&to=\d+/);
  await press("Show all");
  await page.waitForURL((url) => !url.searchParams.has("from"));
  await looksRight(page);
});

test("arrow keys move between rows of a table", { skip }, async () => {
  await page.goto(at("/projects/kiosk/deployments"));
  const rows = page.getByRole("table", { name: "Deployments" }).getByRole("row");
  await rows.nth(3).waitFor();
  const focused = (row: number) => rows.nth(row).locator("a:focus");
  await rows.nth(1).getByRole("link").focus();
  await page.keyboard.press("ArrowDown");
  await focused(2).waitFor();
  await page.keyboard.press("ArrowDown");
  await focused(3).waitFor();
  await page.keyboard.press("ArrowUp");
  await focused(2).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/builds\//);
});

// The path of each page, the last part of the API path that it reads, and the role of its content.
const lists = [
  ["deployments", "builds", "table"],
  ["variables", "env", "heading"],
  ["domains", "domains", "heading"],
  ["cron", "cron", "heading"],
  ["processes", "processes", "table"],
  ["timeline", "timeline", "listitem"],
] as const;

test("a list that fails to load shows the reason and is loaded again on demand", { skip }, async () => {
  const expected = [/^500 \/v1\/projects\/kiosk\//, /^ERR_TIMED_OUT \/v1\/projects\/kiosk\//];
  await faults.during(expected, async () => {
    for (const [index, [path, asked, content]] of lists.entries()) {
      const route = new RegExp(`/v1/projects/kiosk/${asked}(\\?|$)`);
      const error = JSON.stringify({ error: "This was not done.", code: "internal_error" });
      await page.route(route, (each) =>
        index % 2 === 0
          ? each.fulfill({
              status: 500,
              body: error,
              contentType: "application/json",
              headers: { "x-request-id": "req_1" },
            })
          : each.abort("timedout"),
      );
      await page.goto(at(`/projects/kiosk/${path}`));
      const problem = page.getByRole("alert").filter({ has: page.getByRole("button", { name: "Try again" }) });
      const isLost = index % 2 === 1;
      await problem.getByText(isLost ? /^The connection to .* broke/ : "This was not done.").waitFor();
      if (index === 0) await looksRight(page);
      await page.unroute(route);
      // After a lost connection, the page retries without a click.
      if (!isLost) await problem.getByRole("button", { name: "Try again" }).click();
      await problem.waitFor({ state: "detached" });
      await page.getByRole("main").getByRole(content).first().waitFor();
    }
  });
});

test("the URL of a missing resource shows a page that says so", { skip }, async () => {
  const missing = [
    ["builds/none", "Deployment", "Your organization has nothing with this name or id."],
    ["backups/none", "Backup", "Your organization has nothing with this name or id."],
    ["runs/999", "Command 999", "Your organization has nothing with this name or id."],
    ["cron/none", "Not found", "This project has no cron job none."],
  ] as const;
  await faults.during([/^404 \/v1\//], async () => {
    for (const [path, title, text] of missing) {
      await page.goto(at(`/projects/kiosk/${path}`));
      await heading(title).waitFor();
      await page.getByRole("main").getByText(text).waitFor();
      await looksRight(page);
    }
  });
  await page.getByRole("link", { name: "Go to the overview" }).waitFor();
});

test("no page violated the content security policy or logged an error", { skip }, () => {
  assert.deepEqual(faults.found, []);
  assert.equal(context.pages().length, 1);
});
