import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import type { Request, Route } from "playwright-core";
import { projectActions } from "../../src/dashboard/frame/actions.ts";
import { drawCases } from "../support/draw-cases.ts";
import { eventually } from "../support/eventually.ts";
import { buildsTheSame, scriptBytes, servesForDevelopment } from "./dashboard-bundle.ts";
import { looksRight, looksRightEverywhere, screens } from "./dashboard-page.ts";
import { isIdle, logPage, lookRight, pages } from "./dashboard-pages.ts";
import {
  at,
  faults,
  heading,
  openPage,
  page,
  platform,
  press,
  skip,
  takeFromPalette,
  visitorWith,
} from "./dashboard-stage.ts";

test("charts show the values below the pointer, and zoom together", { skip }, async () => {
  for (let visit = 0; visit < 5; visit += 1) await platform.visit("demo");
  await page.goto(at("/projects/demo/metrics"));
  const plots = page.locator("main canvas");
  await plots.nth(1).waitFor();
  // New data and layout changes can hide the values below the pointer. Each attempt moves the pointer by a pixel to show them again.
  let visits = 0;
  const moveTo = async (index: number, share: number) => {
    const { x, y, width, height } = (await plots.nth(index).boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    visits += 1;
    await page.mouse.move(x + width * share, y + height / 2 + (visits % 2));
  };
  const timeShown = async () => {
    await moveTo(1, 0.1);
    const [requests = [], latency = []] = (await page.evaluate(hoverTexts)) as string[][];
    return latency.includes("p99") ? requests[0] : undefined;
  };
  const before = await eventually(timeShown, "both charts show their values below the pointer");
  const zoom = async () => {
    await moveTo(0, 0.5);
    await page.mouse.down();
    await moveTo(0, 0.95);
    await page.mouse.up();
    return (await eventually(timeShown, "the charts show their values after the drag")) !== before;
  };
  await eventually(zoom, "the same position in the chart shows another time");
  await page.waitForURL(/[?&]from=\d+&to=\d+/);
  const zoomed = await eventually(timeShown, "the zoomed charts show their values");
  await page.reload();
  await plots.nth(1).waitFor();
  assert.equal(await eventually(timeShown, "the charts show their values after a reload"), zoomed);
  await page.locator("main .u-over").first().dblclick();
  await page.waitForURL((url) => !url.searchParams.has("from"));
  await eventually(() => page.evaluate(fillsPalely), "the area below a line is pale");
});

test("the URL keeps the filter of a list", { skip }, async () => {
  await platform.call("PUT", "/v1/projects/meanwhile/env/GREETING", { value: "hello" });
  for (const [path, label, row] of [
    ["/", "Filter projects", /demo/],
    ["/projects/meanwhile/variables", "Filter variables", /^GREETING/],
  ] as const) {
    // Another page's link may have put more into the address.
    await page.goto(at(`${path}?other=kept&q=none-has-it`));
    const box = page.getByLabel(label);
    assert.equal(await box.inputValue(), "none-has-it");
    assert.equal(await page.getByRole("row", { name: row }).count(), 0);
    await page.getByText("Nothing matches the filter.").waitFor();
    await box.fill("e");
    await page.waitForURL(/\?other=kept&q=e$/);
    await page.getByRole("row", { name: row }).first().waitFor();
    // The box stays when it is cleared, even above a list that is too short for one.
    await box.fill("");
    await page.waitForURL(/\?other=kept$/);
    await page.keyboard.type("e");
    await page.waitForURL(/\?other=kept&q=e$/);
  }
});

test("the URL keeps the filter of the API page and whether resolved alerts are shown", { skip }, async () => {
  await page.goto(at("/api?q=backups.verify"));
  await page.getByRole("row", { name: /\/verify/ }).waitFor();
  assert.equal(await page.getByRole("row", { name: /overview/ }).count(), 0);
  await page.goto(at("/operator/status"));
  await page.getByLabel("Resolved ones too").check();
  await page.waitForURL(/\?all=true$/);
  await page.reload();
  assert.ok(await page.getByLabel("Resolved ones too").isChecked());
});

test("a touch screen hides keyboard hints, and a tap on a disabled button shows the reason", { skip }, async () => {
  const visitor = await visitorWith(platform.token, { isMobile: true, hasTouch: true });
  await visitor.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  for (const [path, shown, hidden] of [
    ["/", "Go to …", "Ctrl K"],
    ["/projects/demo/metrics", /^A point is /, /Drag in a chart/],
    ["/projects/demo/database", /^One statement that reads/, "Ctrl Enter runs it."],
  ] as const) {
    await visitor.goto(at(path));
    await visitor.getByText(shown).first().waitFor();
    assert.equal(await visitor.getByText(hidden).filter({ visible: true }).count(), 0, path);
  }
  await visitor.goto(at("/projects/meanwhile/processes"));
  const reason = visitor.locator("[data-reason]");
  // Without `force`, Playwright waits until the button is enabled.
  await visitor.getByRole("button", { name: /^Restart all/ }).tap({ force: true });
  await reason.getByText("Nothing runs yet.").waitFor();
  await looksRight(visitor);
  await visitor.context().close();
});

test("going back restores the scroll position of a page", { skip }, async () => {
  await page.goto(at("/api"));
  await page.getByRole("heading", { level: 2 }).first().waitFor();
  // The page grows while its responses arrive.
  await eventually(async () => (await page.evaluate("scrollTo(0, 300), scrollY")) === 300, "the page is long enough");
  await page.getByRole("link", { name: "Activity" }).first().click();
  await heading("Activity").waitFor();
  await page.goBack();
  await heading("API").waitFor();
  await eventually(async () => (await page.evaluate("scrollY")) === 300, "the page is scrolled as before");
});

// Runs in the page: returns whether the last chart has an area filled at an eighth of full opacity.
const fillsPalely = `(() => {
  const chart = Array.from(document.querySelectorAll("main canvas")).at(-1);
  const { data } = chart.getContext("2d").getImageData(0, 0, chart.width, chart.height);
  return data.filter((value, at) => at % 4 === 3 && value > 25 && value < 37).length > 200;
})()`;

// Runs in the page: returns the texts of each box of values.
const hoverTexts = `Array.from(document.querySelectorAll("[data-hover]"), (box) => Array.from(box.querySelectorAll("span"), (each) => each.textContent))`;

test("the list of pages contains every route", { skip }, async () => {
  const text = await readFile(new URL("../../src/dashboard/routes.tsx", import.meta.url), "utf8");
  const routes = Array.from(text.matchAll(/\b(inRoot|inProject)\.\w+\S*\(\s*"([^"]+)"/g), ([, parent, path = ""]) =>
    parent === "inRoot" ? path : `/projects/$slug/${path}`.replace(/\/+$/, ""),
  );
  assert.deepEqual(["/", ...routes].toSorted(), Object.keys(pages).toSorted());
});

test(
  "every page is accessible by keyboard, fits the screen and does not shift, on a wide screen and a phone, light and dark",
  { skip },
  async () => {
    const { body: made } = await platform.call<{ builds: { id: string }[] }>("GET", "/v1/projects/demo/builds");
    const { body: kept } = await platform.call<{ backups: { id: string }[] }>("GET", "/v1/projects/demo/backups");
    // The log of the build, whose long lines wrap on a phone, is always among them.
    const { [logPage]: first = "", ...others } = pages;
    const drawn = [first, ...drawCases(Object.values(others), 9)].map((path) =>
      path.replace("<build>", made.builds[0]?.id ?? "").replace("<backup>", kept.backups[0]?.id ?? ""),
    );
    await lookRight(page, drawn);
  },
);

test(
  "a page's How opens the docs about it, which work signed out, can be searched, and look right",
  { skip },
  async () => {
    await page.setViewportSize(screens.usual);
    await page.goto(at("/projects/demo/domains"));
    const how = page.getByRole("link", { name: "How this page works" });
    assert.equal(await how.getAttribute("href"), "/docs/domains");
    await page.goto(at("/projects/demo/logs"));
    await page.locator("a[href='/docs/observability#logs']").waitFor();
    const reader = await openPage();
    await reader.goto(at("/docs/domains"));
    await reader.getByRole("heading", { level: 1, name: "Hostnames of your own" }).waitFor();
    for (const [path, title, size] of [
      ["/docs", "Docs", screens.phone],
      ["/docs/applications", "Applications", screens.phone],
      ["/docs/routes", "Routes", screens.wide],
      ["/docs?q=nothing-has-it", "Search: nothing-has-it", screens.phone],
    ] as const) {
      await reader.setViewportSize(size);
      await reader.goto(at(path));
      await reader.getByRole("heading", { level: 1, name: title }).waitFor();
      await looksRightEverywhere(reader);
    }
    await reader.getByRole("searchbox").fill("certificate <script> order");
    await reader.getByRole("searchbox").press("Enter");
    await reader.getByText("No section has all of these words.").waitFor();
    await reader.getByRole("searchbox").fill("maintenance page");
    await reader.getByRole("searchbox").press("Enter");
    await reader.getByRole("link", { name: "Applications › The maintenance page" }).click();
    await reader.waitForURL(at("/docs/applications#the-maintenance-page"));
    await reader.context().close();
  },
);

test("a log shows the lines of one level and worse, and a way back to all", { skip }, async () => {
  await page.goto(at("/projects/demo/logs?level=error"));
  await page.getByText("No line names this level or a worse one.").waitFor();
  await page.getByRole("button", { name: "Show all levels" }).click();
  await page.getByRole("log").locator("time").first().waitFor();
  assert.equal(await page.getByLabel("Level").inputValue(), "");
});

test("on a phone the text of a log has the whole width, below its time", { skip }, async () => {
  await page.setViewportSize(screens.phone);
  await page.goto(at("/projects/demo/logs"));
  await page.getByRole("log").locator("time").first().waitFor();
  const places = (await page.evaluate(textPlaces)) as { readonly left: number; readonly isBelow: boolean }[];
  assert.ok(places.length > 0 && places.every(({ left, isBelow }) => left < 40 && isBelow), JSON.stringify(places));
  await page.setViewportSize(screens.usual);
});

test("on a phone a project has one row above its pages, and a sheet with all of them", { skip }, async () => {
  await page.setViewportSize(screens.phone);
  await page.goto(at("/projects/demo/logs"));
  const row = page.getByRole("banner");
  await row.getByRole("link", { name: "demo" }).waitFor();
  await row.getByRole("status").getByText(/\w/).waitFor();
  await heading("Logs").waitFor();
  const { y = 0 } = (await heading("Logs").boundingBox()) ?? {};
  assert.ok(y < 100, `the page begins at ${y} px`);
  await row.getByRole("button", { name: "Pages of the project, now Observe" }).click();
  const sheet = page.getByRole("dialog", { name: "demo" });
  await sheet.getByRole("link", { name: "Logs" }).and(page.locator("[aria-current=page]")).waitFor();
  await looksRight(page);
  await page.setViewportSize(screens.phone);
  await sheet.getByRole("link", { name: "Variables" }).click();
  await heading("Variables").waitFor();
  await sheet.waitFor({ state: "detached" });
  await page.goBack();
  await heading("Logs").waitFor();
  await row.getByRole("button", { name: /now Observe$/ }).click();
  await sheet.getByRole("button", { name: "Actions" }).click();
  await page.getByRole("dialog").getByRole("combobox").waitFor();
  await page.keyboard.press("Escape");
  await sheet.waitFor({ state: "detached" });
  await page.setViewportSize(screens.usual);
});

// Runs in the page: returns where the text of each line of the log begins.
const textPlaces = `Array.from(document.querySelectorAll("[role=log] time"), (time) => {
  const range = document.createRange();
  range.selectNode(time.parentElement.querySelector("br").nextSibling);
  const [text] = range.getClientRects();
  return { left: text.left - document.querySelector("[role=log]").getBoundingClientRect().left, isBelow: text.top >= time.getBoundingClientRect().bottom - 2 };
})`;

test("the status page shows its checks once the open alerts, which it leaves out, are known", { skip }, async (t) => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await page.route(at("/v1/alerts"), async (route) => {
    await released;
    await route.continue();
  });
  t.after(() => page.unrouteAll({ behavior: "ignoreErrors" }));
  const answers = ["/v1/status", "/v1/alerts?all=true"].map((path) => page.waitForResponse(at(path)));
  await page.goto(at("/operator/status?all=true"));
  await Promise.all(answers);
  await isIdle(page);
  const checks = page.getByRole("table", { name: "Checks" });
  assert.equal(await checks.count(), 0);
  release();
  await checks.waitFor();
});

/** Presses two keys in quick succession. The page ignores a pair that takes more than a second, so a slow machine needs retries. */
async function goBy(keys: readonly [string, string], title: string): Promise<void> {
  const hasGone = async () => {
    await Promise.all(keys.map((key) => page.keyboard.press(key)));
    return heading(title)
      .waitFor({ timeout: pairAgainMs })
      .then(() => true)
      .catch(() => false);
  };
  await eventually(hasGone, `${keys.join(" ")} leads to ${title}`);
}

const pairAgainMs = 10_000;

test("Ctrl-K opens the palette, a few letters lead to a page, and Escape closes it", { skip }, async () => {
  await page.goto(at("/"));
  await heading("Overview").waitFor();
  await takeFromPalette("demo: met", /demo: Metrics/);
  await heading("Metrics").waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("combobox", { name: "Go to" }).waitFor({ state: "detached" });
  await goBy(["g", "d"], "Deployments");
  await goBy(["g", "a"], "Activity");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).getByText("To the page's search").waitFor();
  await page.setViewportSize(screens.phone);
  await looksRight(page);
  await page.setViewportSize(screens.usual);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

// The project of the test is not deleted, so the palette does not offer to undelete it.
const paletteLabels = Object.entries(projectActions).flatMap(([kind, [label]]) => (kind === "undelete" ? [] : [label]));

test(
  "the palette opens the form of each action of a project, which sends one request when it is sent twice at once",
  { skip },
  async () => {
    await page.goto(at("/projects/demo"));
    await heading("demo").waitFor();
    let sent = 0;
    // The project has been rolled back to its first deployment, so that only later ones are left to roll back to.
    for (const label of new Set([projectActions.rollback[0], ...drawCases(paletteLabels, 4)])) {
      await takeFromPalette(`demo: ${label}`, `demo: ${label}`);
      await page.getByRole("dialog").getByRole("heading").waitFor();
      sent += await sendsOnce("dialog[open] form");
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    assert.ok(sent > 0, "the form of a rollback was sent");
  },
);

test("a form that is sent twice at once sends one request, and its button is off meanwhile", { skip }, async () => {
  let sent = 0;
  for (const [path, button] of [
    ["/", "New project"],
    ["/access", "New token"],
    ["/projects/demo/settings", ""],
    ["/projects/demo/domains", "Attach a hostname"],
    ["/projects/demo/terminal", ""],
    ["/projects/demo/variables", "Set a variable"],
  ] as const) {
    await page.goto(at(path));
    await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
    await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
    if (button !== "") await press(button);
    sent += await sendsOnce(button === "" ? "main form" : "dialog[open] form");
  }
  assert.ok(sent > 6, `${sent} forms were sent`);
});

test(
  "a button that is pressed twice at once sends one request, and a dialog shows why it was refused",
  { skip },
  async () => {
    await page.goto(at("/projects/demo/deployments"));
    const button = page.getByRole("button", { name: "Deploy again" });
    await button.waitFor();
    const { held, release } = await holdChanges();
    await button.evaluate((element) => {
      const { click } = element as unknown as { click(): void };
      click.call(element);
      click.call(element);
    });
    await page.locator("button[aria-disabled]", { hasText: "Deploy again" }).waitFor();
    await eventually(() => held.length > 0, "the request is sent");
    await isIdle(page);
    assert.equal(held.length, 1);
    await held.pop()?.fulfill({ status: 200, body: "no JSON" });
    await page.getByRole("dialog", { name: "Deploy again" }).getByRole("alert").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await release();
  },
);

/** Holds requests that would change something; others go on. */
async function holdChanges() {
  const held: Route[] = [];
  const isChange = (request: Request) => request.method() !== "GET" && !/dry_run=true|\/plan$/.test(request.url());
  await page.route("**/v1/**", (route) => (isChange(route.request()) ? void held.push(route) : route.fallback()));
  return { held, release: () => page.unroute("**/v1/**") };
}

/** Sends each of these forms twice at once, answers with what the page does not know, and returns how many sent something. */
async function sendsOnce(forms: string): Promise<number> {
  const { held, release } = await holdChanges();
  let sent = 0;
  for (const form of await page.locator(forms).all()) {
    for (const field of await form.locator("input:required, textarea:required, input[name=typed]").all())
      if ((await field.inputValue()) === "") await field.fill("demo");
    const isOff = (await form.locator("button[type=submit][aria-disabled]").count()) > 0;
    await form.evaluate((element) => {
      const { requestSubmit } = element as unknown as { requestSubmit(): void };
      requestSubmit.call(element);
      requestSubmit.call(element);
    });
    await isIdle(page);
    const isBusy = async () => (await form.locator("button[type=submit][aria-disabled]").count()) > 0;
    if (!isOff && (await isBusy())) await eventually(() => held.length > 0, "the request is sent");
    assert.ok(held.length <= (isOff ? 0 : 1), held.map((route) => route.request().url()).join(" and "));
    if (held.length === 0) continue;
    await form.locator("button[type=submit][aria-disabled]").waitFor();
    await held.pop()?.fulfill({ status: 200, body: "no JSON" });
    sent += 1;
    await form.locator("button[type=submit]:not([aria-disabled])").waitFor();
  }
  await release();
  return sent;
}

test("two builds of the same sources produce identical files", { skip }, () => buildsTheSame(platform.api));

test("the development server has hot reload and forwards a sign-in", { skip }, () => servesForDevelopment(platform));

test("the first load needs at most 150 kB of script, and nothing of the terminal", { skip }, async () => {
  const size = await scriptBytes(platform.api);
  assert.ok(size > 0 && size <= 150_000, `${size} bytes`);
});

test("no page violated the content security policy, logged an error or ran a tenant's script", { skip }, async () => {
  assert.deepEqual(faults.found, []);
  assert.doesNotMatch(await page.title(), /broken in/);
});
