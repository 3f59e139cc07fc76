import assert from "node:assert/strict";
import { AxeBuilder } from "@axe-core/playwright";
import type { BrowserContext, Locator, Page } from "playwright-core";
import { until } from "../../src/kit/until.ts";
import { eventually, guardMs } from "../support/eventually.ts";

export const screens = {
  narrow: { width: 360, height: 740 },
  phone: { width: 390, height: 844 },
  usual: { width: 1280, height: 800 },
  wide: { width: 1440, height: 900 },
};

/** Faults in watched pages: errors, rejections, failed requests and violations of the content security policy. */
export interface Faults {
  readonly found: readonly string[];
  /**
   * Runs an action during which each of these faults must occur at least once, such as `401 /session` for a failed request or
   * `ERR_FAILED /v1/me` for a failed connection. The action can wait for them with `haveCome`.
   */
  during(expected: readonly RegExp[], action: (haveCome: () => Promise<void>) => Promise<unknown>): Promise<void>;
  watch(context: BrowserContext): Promise<Page>;
}

// A busy platform may respond with 429 or 503; the dashboard retries.
const isBusy = /^(?:429|503) \/v1\//;

export function createFaults(): Faults {
  const found: string[] = [];
  // Times of the browser's clock, because a message can arrive here after the action has ended.
  const windows: { pattern: RegExp; from: number; until: number; seen: number }[] = [];
  const isExpected = (fault: string, at: number) => {
    const open = windows.filter(({ pattern, from, until }) => at >= from && at <= until && pattern.test(fault));
    for (const window of open) window.seen += 1;
    return open.length > 0 || isBusy.test(fault);
  };
  return {
    found,
    async during(expected, action) {
      const opened = expected.map((pattern) => ({
        pattern,
        from: Date.now(),
        until: Number.POSITIVE_INFINITY,
        seen: 0,
      }));
      windows.push(...opened);
      const missing = () => opened.filter(({ seen }) => seen === 0).map(({ pattern }) => String(pattern));
      const haveCome = async () => {
        await eventually(() => missing().length === 0, `the browser reports ${expected.join(", ")}`);
      };
      await action(haveCome);
      await haveCome();
      for (const window of opened) window.until = Date.now();
    },
    async watch(context) {
      const page = await context.newPage();
      page.setDefaultTimeout(guardMs);
      page.on("pageerror", (error) => found.push(`error: ${error.message}`));
      page.on("console", (message) => {
        const fault = faultOf(message.text(), message.location().url);
        if (message.type() === "error" && !isExpected(fault, message.timestamp()))
          found.push(`${fault} on ${page.url()}`);
      });
      return page;
    },
  };
}

/** Returns a console message with its URL, or for a failed request its status or network error and its path. */
function faultOf(text: string, url: string): string {
  const [, what] = /^Failed to load resource: (?:the server responded with a status of |net::)(\w+)/.exec(text) ?? [];
  return what === undefined ? `${text} ${url}` : `${what} ${URL.parse(url)?.pathname ?? url}`;
}

// Runs in the page: records layout shifts without recent user input.
export const observeShifts = `
window.shifted = [];
window.shiftScore = 0;
new PerformanceObserver((list) => {
  for (const { value, sources, hadRecentInput } of list.getEntries())
    if (!hadRecentInput) window.shiftScore += value, window.shifted.push(value.toFixed(4) + " " + sources.map(({ node }) => node?.className ?? "").join(" | "));
}).observe({ type: "layout-shift", buffered: true });`;

/** Checks that the page contains no raw bidirectional control characters. */
export async function showsMarks(page: Page): Promise<void> {
  assert.deepEqual(await page.evaluate(rawMarks), [], page.url());
}

// Runs in the page.
const rawMarks = `[document.title, document.body.textContent, ...Array.from(document.querySelectorAll("[title], [aria-label]"), (each) => each.title + each.ariaLabel)]
  .filter((text) => /[\\u202a-\\u202e\\u2066-\\u2069]/.test(text)).map((text) => text.slice(0, 500))`;

/** Checks accessibility rules and bidirectional characters, and that page and tables fit narrow and wide screens in width. */
export async function looksRight(page: Page): Promise<void> {
  await breaksNoRule(page, { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] });
  await showsMarks(page);
  const before = page.viewportSize() ?? screens.usual;
  for (const screen of [screens.narrow, screens.wide]) await fits(page, screen);
  await page.setViewportSize(before);
}

const looks = [
  { screen: screens.phone, colorScheme: "light" },
  { screen: screens.wide, colorScheme: "light" },
  { screen: screens.wide, colorScheme: "dark" },
  { screen: screens.phone, colorScheme: "dark" },
] as const;

/** Checks a loaded page on a phone and a wide screen, light and dark, for accessibility, use by keyboard alone, and fit. */
export async function looksRightEverywhere(page: Page): Promise<void> {
  try {
    for (const { screen, colorScheme } of looks) {
      await page.emulateMedia({ colorScheme });
      await hasColours(page, colorScheme);
      await fits(page, screen);
      // The dark scheme has the same elements, so only rules about colours can differ.
      if (colorScheme === "light") {
        await breaksNoRule(page, { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] });
        assert.deepEqual(await page.evaluate(unreachable), [], `${page.url()} with the keyboard`);
      } else await breaksNoRule(page, { type: "rule", values: ["color-contrast", "link-in-text-block"] });
    }
    await fits(page, screens.narrow);
    await showsMarks(page);
  } finally {
    // What follows works on the usual screen, also when this page fails.
    await page.emulateMedia({ colorScheme: null });
    await page.setViewportSize(screens.usual);
  }
}

/** Waits until background and text have the colours of this scheme; the browser needs some frames after a change of scheme. */
export async function hasColours(page: Page, scheme: "light" | "dark"): Promise<void> {
  const [ground, text] = scheme === "dark" ? ["dark", "light"] : ["light", "dark"];
  const isRecoloured = async () => (await page.evaluate(brightness)) === `${text} on ${ground}`;
  await eventually(isRecoloured, `${page.url()} has its ${scheme} colours`);
}

// Runs in the page.
const brightness = `(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d");
  const isDark = (colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data[0] < 128;
  };
  const { color, backgroundColor } = getComputedStyle(document.body);
  return [color, backgroundColor].map((each) => (isDark(each) ? "dark" : "light")).join(" on ");
})()`;

async function breaksNoRule(page: Page, runOnly: { type: "tag" | "rule"; values: string[] }): Promise<void> {
  const { violations } = await new AxeBuilder({ page })
    .options({ runOnly, resultTypes: ["violations"] })
    // Run axe in the page itself, which has no frames; otherwise axe opens a second page for each run.
    .setLegacyMode()
    .analyze();
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  assert.deepEqual(found, [], page.url());
}

async function fits(page: Page, screen: { readonly width: number; readonly height: number }): Promise<void> {
  await page.setViewportSize(screen);
  // A chart is resized one frame after the screen.
  const isFitting = async () => ((await page.evaluate(tooWide)) as string[]).length === 0 || undefined;
  if (await until(isFitting, { timeoutMs: fitsWithinMs })) return;
  assert.deepEqual(await page.evaluate(tooWide), [], `${page.url()} on ${screen.width} px`);
}

const fitsWithinMs = 30_000;

// Runs in the page. Skips grids that are meant to scroll: they are focusable. Gives relative times their maximum width first.
const tooWide = `(() => {
  for (const time of document.querySelectorAll("time")) if (/now$| ago$/.test(time.textContent)) time.textContent = "59 min ago";
  return [document.documentElement, ...document.querySelectorAll("main div:has(> table):not([tabindex])")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.textContent.slice(0, 80));
})()`;

// Runs in the page: finds elements that react to clicks but are not reachable by Tab in page order, or do not show their focus.
const unreachable = `(() => {
  const reachable = "a[href], button, input, select, textarea, summary, [tabindex]";
  const propsOf = (element) => element[Object.keys(element).find((key) => key.startsWith("__reactProps$"))] ?? {};
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    if (!element.checkVisibility({ visibilityProperty: true }) || element.closest("[inert]")) continue;
    const name = () => element.outerHTML.slice(0, 160);
    if (!element.matches(reachable)) {
      if (propsOf(element).onClick !== undefined) found.push("only clicks: " + name());
      continue;
    }
    if (element.tabIndex > 0) found.push("another order: " + name());
    if (element.tabIndex !== 0 || element.matches(":disabled")) continue;
    element.focus({ focusVisible: true, preventScroll: true });
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    if (document.activeElement !== element) found.push("takes no focus: " + name());
    else if (outlineStyle === "none" || parseFloat(outlineWidth) < 2) found.push("shows no focus: " + name());
  }
  document.activeElement.blur();
  return found;
})()`;

const mostSteps = 150;

/** Presses Tab until `target` has the focus; the focus must be in the viewport and visibly marked. */
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

/** Gives a page an authenticator that answers at once, as a phone's with a finger on it. */
export async function withPasskeys(visitor: Page): Promise<Page> {
  const devtools = await visitor.context().newCDPSession(visitor);
  await devtools.send("WebAuthn.enable");
  const options = {
    protocol: "ctap2",
    transport: "internal",
    hasResidentKey: true,
    hasUserVerification: true,
  } as const;
  await devtools.send("WebAuthn.addVirtualAuthenticator", {
    options: { ...options, isUserVerified: true, automaticPresenceSimulation: true },
  });
  return visitor;
}
