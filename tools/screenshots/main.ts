import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { renderPage, type PageCode } from "../../src/ports/edge-pages.ts";
import { startPlatform } from "../../test/e2e/platform.ts";
import { launchBrowser } from "../../test/support/browser.ts";
import { eventually } from "../../test/support/eventually.ts";
import { createClient } from "../../src/contract/client.ts";
import { fillPlatform, requested } from "./fill-platform.ts";
import { states, type Stage } from "./states.ts";

/**
 * Pictures of the dashboard's pages into tmp/screenshots, to be looked at: a phone, a wide screen and a very wide one, light and dark.
 *
 *   npm run screenshots                              every page of a platform of its own, with much data and with none
 *   npm run screenshots -- URL TOKEN-FILE PATH...    these pages of a running platform
 *   npm run screenshots -- URL TOKEN-FILE =STATE...  these states of it, such as =palette; = alone is all of them
 */
const [url, tokenFile, ...paths] = process.argv.slice(2);
const widths = (process.env["SCREENSHOT_WIDTHS"] ?? "390,1440,2560").split(",").map(Number);
const schemes = (process.env["SCREENSHOT_SCHEMES"] ?? "light,dark").split(",") as ("light" | "dark")[];
const folder = join("tmp", "screenshots");
const settleMs = 900;

const tabs = [
  "",
  "/deployments",
  "/previews",
  "/processes",
  "/logs",
  "/requests",
  "/metrics",
  "/variables",
  "/domains",
  "/cron",
  "/database",
];
const moreTabs = ["/backups", "/timeline", "/terminal", "/storage", "/files", "/settings"];
const details = [
  "/database/public/orders",
  "/compare?from=1&to=2",
  "/cron/clean-up",
  "/runs/1",
  "/files?path=src/cart.js",
];
const ofShop = [...tabs, ...moreTabs, ...details];
const ofOperator = ["/operator", "/operator/organizations", "/operator/status"];
const ofOrganization = ["/", "/approvals", "/activity", "/access", "/account", "/api"];

/** Dialogs: a page, and the button that opens one. */
const ofButtons = [
  ["/projects/shop/deployments", "Roll back to #2"],
  ["/projects/shop/variables", "Set a variable"],
  ["/projects/shop/variables", "Paste a .env"],
  ["/projects/shop/cron", "New job"],
  ["/projects/shop/database/public/orders", "Insert a row"],
  ["/projects/shop/settings", "Delete"],
  ["/access", "New token"],
  ["/access", "Add a channel"],
  ["/operator/organizations", "New organization"],
] as const;

const stateNames = Object.keys(states);

interface Shoot {
  readonly url: string;
  readonly token: string;
  readonly paths: readonly string[];
  /** Begins the names of the files. */
  readonly prefix: string;
  readonly dialogs?: typeof ofButtons;
  /** Names of states. */
  readonly states?: readonly string[];
  /** Pages of the edge, by name: their HTML. */
  readonly plain?: Readonly<Record<string, string>>;
  /** The addresses of pages that decide a request. */
  readonly decisions?: readonly string[];
}

async function shootAll(): Promise<void> {
  const platform = await startPlatform({ BERTH_PUBLIC_ADDRESSES: "203.0.113.7" });
  try {
    const emptyToken = await fillPlatform(platform);
    const pages = [...ofOrganization, ...ofOperator, ...ofShop.map((path) => `/projects/shop${path}`)];
    const decisions = await decisionLinks(platform.dataDir);
    await shoot({
      url: platform.api,
      token: platform.token,
      paths: pages,
      dialogs: ofButtons,
      prefix: "many-",
      plain: Object.fromEntries(shownCodes.map((code) => [`edge-${code}`, renderPage(code, "text/html").body])),
      decisions,
      states: stateNames,
    });
    const none = [...tabs, ...moreTabs].map((path) => `/projects/new-idea${path}`);
    await shoot({ url: platform.api, token: platform.token, paths: none, prefix: "none-" });
    await shoot({ url: platform.api, token: emptyToken, paths: ofOrganization, prefix: "none-" });
  } finally {
    await platform.destroy();
  }
}

const shownCodes: readonly PageCode[] = ["unknown_host", "nothing_deployed", "app_not_running", "maintenance"];

/** The links that the operator got for the requests that wait. */
async function decisionLinks(dataDir: string): Promise<string[]> {
  const outbox = join(dataDir, "outbox");
  const links = () => {
    const mails = (existsSync(outbox) ? readdirSync(outbox) : []).map((name) =>
      readFileSync(join(outbox, name), "utf8"),
    );
    const found = new Set(mails.join("\n").match(/http\S+\/decide\/[^\s"\\]+/g));
    return found.size === requested && [...found];
  };
  return eventually(links, "the operator is asked");
}

async function shoot(what: Shoot): Promise<void> {
  const { browser, close } = await launchBrowser(Number(new URL(what.url).port));
  try {
    for (const width of widths) for (const scheme of schemes) await picture(browser, what, { width, scheme });
  } finally {
    await close();
  }
}

interface Look {
  readonly width: number;
  readonly scheme: "light" | "dark";
}

async function picture(browser: Browser, what: Shoot, { width, scheme }: Look): Promise<void> {
  const isMobile = width < 640;
  const viewport = { width, height: isMobile ? 844 : width > 2000 ? 1300 : 900 };
  const context = await browser.newContext({ viewport, colorScheme: scheme, isMobile, hasTouch: isMobile });
  const page = await context.newPage();
  const save = async (name: string) => {
    const path = join(folder, `${what.prefix}${name}-${width}-${scheme}.png`);
    // A whole page is taller than what a dialog covers.
    await page.screenshot({ path, fullPage: (await page.locator("dialog[open]").count()) === 0 });
    console.log(path);
  };
  page.on("console", (message) => {
    if (message.type() === "error") console.log(`  console: ${message.text()}`);
  });
  page.on("pageerror", (error) => console.log(`  error: ${error.message}`));
  await signIn(page, what);
  for (const path of what.paths) {
    await open(page, what, path);
    await save(nameOf(path));
  }
  for (const [path, button] of what.dialogs ?? []) {
    await open(page, what, path);
    await page.getByRole("button", { name: button, exact: true }).first().click();
    await page.waitForTimeout(settleMs);
    await save(`dialog-${nameOf(`${path} ${button}`)}`);
  }
  for (const name of what.states ?? []) {
    await states[name]?.(stageOf(page, what));
    await page.waitForTimeout(settleMs);
    await save(`state-${name}`);
    await page.unrouteAll({ behavior: "ignoreErrors" });
  }
  for (const [name, html] of Object.entries(what.plain ?? {})) {
    // A document of its own: the dashboard's policy allows no style in a page.
    await page.goto("about:blank");
    await page.setContent(html);
    await save(name);
  }
  for (const [index, address] of (what.decisions ?? []).entries()) {
    await page.goto(address);
    await page.waitForTimeout(settleMs);
    await save(`decision-${index + 1}`);
  }
  await context.close();
}

function stageOf(page: Page, what: Shoot): Stage {
  const visit = async (path: string) => void (await page.goto(new URL(path, what.url).href));
  return {
    page,
    client: createClient({ baseUrl: what.url, token: what.token }),
    open: (path) => open(page, what, path),
    visit,
    async signInAs(token) {
      await page.context().clearCookies();
      await signIn(page, { ...what, token });
    },
  };
}

async function open(page: Page, what: Shoot, path: string): Promise<void> {
  await page.goto(new URL(path, what.url).href);
  await page.locator("main h1").first().waitFor();
  await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
  await page.waitForTimeout(settleMs);
}

const nameOf = (path: string) => path.replaceAll(/[^a-z0-9]+/gi, "-").replaceAll(/^-|-$/g, "") || "overview";

async function signIn(page: Page, { url: address, token }: Shoot): Promise<void> {
  await page.goto(address);
  await page.getByLabel("API token").fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
}

mkdirSync(folder, { recursive: true });
if (url === undefined) await shootAll();
else if (tokenFile === undefined || paths.length === 0)
  throw new Error("Usage: npm run screenshots [-- URL TOKEN-FILE PATH...]");
else {
  const named = paths.filter((path) => path.startsWith("=")).map((path) => path.slice(1));
  const chosen = named.includes("") ? stateNames : named;
  const pages = paths.filter((path) => !path.startsWith("="));
  await shoot({ url, token: readFileSync(tokenFile, "utf8").trim(), paths: pages, prefix: "", states: chosen });
}
