import assert from "node:assert/strict";
import { AxeBuilder } from "@axe-core/playwright";
import type { BrowserContext, Locator, Page } from "playwright-core";
import { until } from "../../src/kit/until.ts";
import { guardMs } from "../support/eventually.ts";

export const screens = {
  phone: { width: 390, height: 844 },
  usual: { width: 1280, height: 800 },
  wide: { width: 1440, height: 900 },
};

/** What went wrong in watched pages: errors, rejections and breaches of the policy. */
export interface Faults {
  readonly found: readonly string[];
  /** Until the next call, messages of the console like this one are part of the test. */
  expect(message: RegExp | undefined): void;
  watch(context: BrowserContext): Promise<Page>;
}

// A platform on a busy machine may say that it is: the dashboard asks again.
const isBusy = /status of (?:429|503)/;

export function createFaults(): Faults {
  const found: string[] = [];
  // By the browser's clock: a message may arrive here after the next call.
  const expected: { message: RegExp; from: number; until: number }[] = [];
  const isExpected = (text: string, at: number) =>
    isBusy.test(text) || expected.some(({ message, from, until }) => at >= from && at <= until && message.test(text));
  return {
    found,
    expect(message) {
      const now = Date.now();
      for (const each of expected) each.until = Math.min(each.until, now);
      if (message !== undefined) expected.push({ message, from: now, until: Number.POSITIVE_INFINITY });
    },
    async watch(context) {
      const page = await context.newPage();
      page.setDefaultTimeout(guardMs);
      page.on("pageerror", (error) => found.push(`error: ${error.message}`));
      page.on("console", (message) => {
        if (message.type() === "error" && !isExpected(message.text(), message.timestamp()))
          found.push(`console: ${message.text()} ${message.location().url}`);
      });
      return page;
    },
  };
}

// Runs in the page: what moved without a person having done anything.
export const observeShifts = `
window.shifted = [];
window.shiftScore = 0;
new PerformanceObserver((list) => {
  for (const { value, sources, hadRecentInput } of list.getEntries())
    if (!hadRecentInput) window.shiftScore += value, window.shifted.push(value.toFixed(4) + " " + sources.map(({ node }) => node?.className ?? "").join(" | "));
}).observe({ type: "layout-shift", buffered: true });`;

/** No mark that changes the direction of text is in the page as itself. */
export async function showsMarks(page: Page): Promise<void> {
  assert.deepEqual(await page.evaluate(rawMarks), [], page.url());
}

// Runs in the page.
const rawMarks = `[document.title, document.body.textContent, ...Array.from(document.querySelectorAll("[title], [aria-label]"), (each) => each.title + each.ariaLabel)]
  .filter((text) => /[\\u202a-\\u202e\\u2066-\\u2069]/.test(text)).map((text) => text.slice(0, 500))`;

/** It breaks no rule of accessibility, shows marks that change the direction of text, and on a wide screen as on a phone nothing has to be scrolled sideways: neither the page nor a table in it. */
export async function looksRight(page: Page): Promise<void> {
  const { violations } = await new AxeBuilder({ page })
    .options({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], resultTypes: ["violations"] })
    // In the page itself, which has no frames, instead of a second one for each look.
    .setLegacyMode()
    .analyze();
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  assert.deepEqual(found, [], page.url());
  await showsMarks(page);
  const before = page.viewportSize() ?? screens.usual;
  for (const screen of [screens.phone, screens.wide]) {
    await page.setViewportSize(screen);
    // A chart follows the width of the screen a frame later.
    const isFitting = async () => ((await page.evaluate(tooWide)) as string[]).length === 0 || undefined;
    if (await until(isFitting, { timeoutMs: fitsWithinMs })) continue;
    assert.deepEqual(await page.evaluate(tooWide), [], `${page.url()} on ${screen.width} px`);
  }
  await page.setViewportSize(before);
}

const fitsWithinMs = 30_000;

// Runs in the page. A grid that is there to be scrolled can have the focus.
const tooWide = `[document.documentElement, ...document.querySelectorAll("main div:has(> table):not([tabindex])")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.textContent.slice(0, 80))`;

const mostSteps = 150;

/** Presses Tab until this has the focus, which has to be in sight and marked. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  const focused = target.and(page.locator(":focus"));
  for (let step = 0; (await focused.count()) === 0; step += 1) {
    assert.ok(step < mostSteps, `${String(target)} did not get the focus`);
    await page.keyboard.press("Tab");
  }
  assert.ok(await page.evaluate(isFocusMarked), `${String(target)} does not show its focus`);
}

// Runs in the page.
const isFocusMarked = `(() => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
  const { top, bottom } = document.activeElement.getBoundingClientRect();
  return outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 && bottom > 0 && top < innerHeight;
})()`;
