import { gzipSync } from "node:zlib";
import type { CDPSession, Page } from "playwright-core";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { createApp, startPlatform, type TestPlatform } from "../../test/e2e/platform.ts";
import { launchBrowser, noBrowser } from "../../test/support/browser.ts";
import { eventually, guardMs } from "../../test/support/eventually.ts";
import { benchSize, comparing, goalRow, median, timeRow, type BenchRow } from "./row.ts";

const slowdown = 4;
const rounds = 5;
const settleMs = 1000;
// Smaller numbers suffice to test the bench itself.
const logLines = benchSize("lines", 100_000);
const lineHeight = 20;
const tableRows = benchSize("rows", 10_000_000);
const lookedAt = ["/", "/projects/demo", "/projects/demo/deployments", "/projects/demo/metrics"];

export function dashboardBenchLacks(): string | undefined {
  if (noBrowser !== undefined) return `The dashboard is not measured: ${noBrowser}.`;
  return missingPart === false ? undefined : `The dashboard is not measured: ${missingPart}.`;
}

/** Measures what a person waits for: paint on a slow processor, script, layout shifts, frames of scrolling. Needs 1 GB of disk. */
export async function measureDashboard(): Promise<readonly BenchRow[]> {
  // Accept all lines of the log at once instead of a thousand a second.
  await using platform = await startPlatform({ BERTH_LOG_LINES_PER_SECOND: "1000000" });
  await eventually(async () => (await visit(platform, "/")).ok, "the dashboard is built", 900_000);
  await prepare(platform);
  return [
    goalRow("script of the first load, gzip", await scriptKb(platform), { goal: 150, unit: "kB" }),
    ...(await withPage(platform, measurePaint)),
    ...(await withPage(platform, measureLog)),
    ...(await withPage(platform, measureTable)),
  ];
}

type Measure = (page: Page, platform: TestPlatform) => Promise<BenchRow[]>;

async function withPage(platform: TestPlatform, measure: Measure): Promise<BenchRow[]> {
  await using chromium = await launchBrowser(Number(new URL(platform.api).port), { isUrgent: true });
  const page = await (await chromium.browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
  page.setDefaultTimeout(guardMs);
  await signIn(page, platform);
  return await measure(page, platform);
}

const visit = (platform: TestPlatform, path: string) =>
  fetch(`${platform.api}${path}`, { headers: { accept: "text/html" } });

const files = {
  "package.json": JSON.stringify({ name: "demo", private: true, dependencies: { pg: "8.23.1" } }),
  Procfile: "web: node server.js\n",
  // Prints the requested number of lines in small batches, as an application does.
  "server.js": `
let left = 0;
setInterval(() => {
  for (let n = 0; n < 400 && left > 0; n += 1) console.log("GET /orders/" + left-- + " 200 4 ms, customer \\u001b[32m" + left * 7919 + "\\u001b[0m");
}, 50);
require("node:http").createServer((request, response) => {
  if (request.url === "/print") left = ${logLines};
  response.end("one");
}).listen(process.env.PORT, process.env.HOST);`,
  "fill.js": `
const { Client } = require("pg");
(async () => {
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  await client.query("create table customers (id int, name text, score int, joined timestamptz, note text)");
  await client.query("insert into customers select n, 'Customer ' || n, (n::bigint * 7919) % 1000003, timestamptz '2020-01-01' + n * interval '1 s', case when n % 3 = 0 then 'a note' end from generate_series(1, ${tableRows}) n");
  await client.query("alter table customers add primary key (id)");
  // Otherwise autovacuum would run in the middle of the measurement.
  await client.query("vacuum (analyze) customers");
  await client.end();
})();`,
};

async function prepare(platform: TestPlatform): Promise<void> {
  const app = await createApp(platform, "demo", files);
  await platform.call("POST", "/v1/projects/demo/database");
  const pushed = await app.push("main");
  if (pushed.exitCode !== 0) throw new Error(`the application was not deployed: ${pushed.stderr}`);
  const command = { command: "node fill.js", timeout_seconds: 1800, wait_seconds: 0 };
  const { body } = await platform.call<{ run: { number: number } }>("POST", "/v1/projects/demo/runs", command);
  const status = async () => {
    const got = await platform.call<{ run: { status: string } }>("GET", `/v1/projects/demo/runs/${body.run.number}`);
    return got.body.run.status;
  };
  const isOver = async () => !["queued", "running"].includes(await status());
  await eventually(isOver, "the table is filled", 1_800_000);
  if ((await status()) !== "succeeded") throw new Error(`the table was not filled: ${await status()}`);
}

async function signIn(page: Page, platform: TestPlatform): Promise<void> {
  await page.goto(platform.api);
  await page.getByLabel("API token").fill(platform.token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
}

async function scriptKb(platform: TestPlatform): Promise<number> {
  const html = await (await visit(platform, "/")).text();
  let bytes = 0;
  for (const [, path = ""] of html.matchAll(/(?:src|href)="(\/assets\/[^"]+\.js)"/g))
    bytes += gzipSync(await (await fetch(`${platform.api}${path}`)).bytes(), { level: 9 }).length;
  return bytes / 1000;
}

/** Runs in the page before the page's own scripts. */
const observe = `
window.largest = 0;
window.shift = 0;
new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.largest = entry.startTime; }).observe({ type: "largest-contentful-paint", buffered: true });
new PerformanceObserver((list) => { for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value; }).observe({ type: "layout-shift", buffered: true });`;

async function measurePaint(page: Page, platform: TestPlatform): Promise<BenchRow[]> {
  const session = await page.context().newCDPSession(page);
  await page.addInitScript(observe);
  await session.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
  const rows: BenchRow[] = [];
  let shift = 0;
  const look = async (path: string, cache: string) => {
    const paints: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      // Don't wait for an idle network: the stream of changes never ends.
      await page.goto(`${platform.api}${path}`, { waitUntil: "load" });
      await page.locator("main h1").first().waitFor();
      await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
      await page.waitForTimeout(settleMs);
      paints.push(Number(await page.evaluate("window.largest")));
      shift = Math.max(shift, Number(await page.evaluate("window.shift")));
    }
    const name = `largest paint of ${path} with ${cache} cache, processor ${slowdown} times slower`;
    rows.push(goalRow(name, median(paints), { goal: 1000, unit: "ms" }));
  };
  for (const path of lookedAt) await look(path, "a warm");
  // Measure without a cache, as for a first visit.
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  await look("/", "no");
  await session.send("Network.setCacheDisabled", { cacheDisabled: false });
  await session.send("Emulation.setCPUThrottlingRate", { rate: 1 });
  return [...rows, goalRow("layout shift at most, in thousandths", shift * 1000, { goal: 10, unit: "ms" })];
}

async function measureLog(page: Page, platform: TestPlatform): Promise<BenchRow[]> {
  await page.goto(`${platform.api}/projects/demo/logs`);
  const log = page.getByRole("log");
  await log.waitFor();
  await platform.visit("demo", "/print");
  const height = async () => Number(await page.evaluate("document.querySelector('[role=log]').scrollHeight"));
  await eventually(async () => (await height()) >= logLines * lineHeight, "all lines are there", 600_000);
  const name = `${logLines.toLocaleString("en")} log lines scroll`;
  const ours = await measureScroll(page, "[role=log]", -6000);
  return framesRows(name, ours, await measureEmptyPage(page, 6000));
}

async function measureTable(page: Page, platform: TestPlatform): Promise<BenchRow[]> {
  await page.goto(`${platform.api}/projects/demo/database/public/customers?sort=id&offset=${tableRows / 2}`);
  await page.getByRole("cell", { name: `Customer ${tableRows / 2 + 1}`, exact: true }).waitFor({ timeout: 60_000 });
  const name = `a page of a table of ${tableRows.toLocaleString("en")} rows scrolls`;
  const ours = await measureScroll(page, "div:has(> table)", 800);
  return framesRows(name, ours, await measureEmptyPage(page, 800));
}

const scrollMs = 4000;

interface Frames {
  readonly perSecond: number;
  /** 99 % of the frames took at most this long. */
  readonly lateMs: number;
  readonly processorMs: number;
}

function framesRows(name: string, ours: Frames, empty: Frames): BenchRow[] {
  const against = "an empty page";
  return [
    goalRow(name, ours.perSecond, { goal: 59, unit: "frames/s" }),
    comparing("frames/s")(name, against, { ours: ours.perSecond, theirs: empty.perSecond }),
    goalRow(`${name}, 99 % of frames within`, ours.lateMs, { goal: 25, unit: "ms" }),
    timeRow(`${name}, 99 % of frames within`, against, { ours: ours.lateMs, theirs: empty.lateMs }),
    goalRow(`${name}, processor time of the page a frame`, ours.processorMs, { goal: 16, unit: "ms" }),
  ];
}

/** Scrolls an empty page in the same way, to measure the browser and the machine alone. */
async function measureEmptyPage(page: Page, speed: number): Promise<Frames> {
  const empty = await page.context().newPage();
  await empty.setContent(`<div id="log" style="height:90vh;overflow:auto"><div style="height:2000000px"></div></div>`);
  const frames = await measureScroll(empty, "#log", speed);
  await empty.close();
  return frames;
}

/** Scrolls with real wheel events and records the time of every frame. `speed` is in pixels a second; negative values scroll towards the start. */
async function measureScroll(page: Page, selector: string, speed: number): Promise<Frames> {
  const session = await page.context().newCDPSession(page);
  const box = await page.locator(selector).first().boundingBox();
  if (box === null) throw new Error(`${selector} is not in sight`);
  const at = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  await page.evaluate(`window.frames_ = []; window.goes = true;
    requestAnimationFrame(function note(now) { window.frames_.push(now); if (window.goes) requestAnimationFrame(note); })`);
  // CPU time, unlike wall time, does not depend on other work of the machine.
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const before = await taskMs(session);
  await session.send("Input.synthesizeScrollGesture", {
    ...at,
    yDistance: (-speed * scrollMs) / 1000,
    speed: Math.abs(speed),
    gestureSourceType: "mouse",
    preventFling: true,
  });
  const times = (await page.evaluate("window.goes = false, window.frames_")) as number[];
  const processorMs = (await taskMs(session)) - before;
  const deltas = times.slice(1).map((time, index) => time - (times[index] ?? time));
  return {
    perSecond: (deltas.length * 1000) / ((times.at(-1) ?? 0) - (times[0] ?? 0)),
    lateMs: deltas.toSorted((a, b) => a - b)[Math.floor(deltas.length * 0.99)] ?? 0,
    processorMs: processorMs / deltas.length,
  };
}

/** Returns the CPU time of the page's main thread. */
async function taskMs(session: CDPSession): Promise<number> {
  const { metrics } = await session.send("Performance.getMetrics");
  return (metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0) * 1000;
}
