import { after, before } from "node:test";
import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { launchBrowser, noBrowser, type TestBrowser } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { makeRemote, serveHttps, type RemoteFolder } from "../support/git-remotes.ts";
import { mailServer } from "../support/mail-server.ts";
import { createFaults, observeShifts, screens } from "./dashboard-page.ts";
import { startPlatform, type TestPlatform } from "./platform.ts";

// The dashboard tests share one platform, one browser and one page, whose state carries over from test to test.
export const skip = noBrowser ?? false;
export const faults = createFaults();
export let platform: TestPlatform;
export let context: BrowserContext;
export let page: Page;
export let mailbox: Awaited<ReturnType<typeof mailServer>>;
/** A git server that the platform reaches over HTTPS, and its repository, which is empty. */
export let remote: RemoteFolder & { readonly url: string };
let server: Awaited<ReturnType<typeof serveHttps>>;
let chromium: TestBrowser;

before(async () => {
  if (noBrowser !== undefined) return;
  mailbox = await mailServer();
  const folder = await makeRemote();
  server = await serveHttps(folder);
  remote = { ...folder, url: server.url.replace("localhost", "127.0.0.1") };
  platform = await startPlatform({
    // A machine that only listens on loopback has no public address, so the dashboard would show no DNS records.
    BERTH_PUBLIC_ADDRESSES: "203.0.113.7",
    // The git server is on this machine, and its certificate is its own.
    BERTH_OUTGOING_NETWORKS: "127.0.0.0/8",
    BERTH_CA_FILE: folder.caFile,
    BERTH_MONITOR_SECONDS: "5",
    // Whether a daily backup is due depends on the hour at which the tests run.
    BERTH_BACKUP_WINDOW: "never",
    // The tests click faster than people, with one token.
    BERTH_READS_PER_MINUTE: "100000",
    BERTH_SMTP_URL: mailbox.url,
    BERTH_MAIL_FROM: "berth@example.com",
    BERTH_MAIL_TO: "operator@example.com",
  });
  const asPage = { headers: { accept: "text/html" } };
  // The build runs at the lowest priority, so it takes very long on a busy machine.
  await eventually(async () => (await fetch(at("/"), asPage)).ok, "the dashboard is built", 1_800_000);
  chromium = await launchBrowser(Number(new URL(platform.api).port));
  page = await openPage();
  context = page.context();
  await page.addInitScript(observeShifts);
});
after(async () => {
  await chromium?.close();
  await platform?.destroy();
  await mailbox?.close();
  await server?.close();
  await remote?.close();
});

/** Opens a page in its own browser context, without animations, during which positions and colours are not final. */
export async function openPage(options: BrowserContextOptions = {}): Promise<Page> {
  const usual = { viewport: screens.usual, reducedMotion: "reduce" } as const;
  return faults.watch(await chromium.browser.newContext({ ...usual, ...options }));
}

/** Opens a page in another browser context and signs in with a token. */
export async function visitorWith(token: string, options?: BrowserContextOptions): Promise<Page> {
  const visitor = await openPage(options);
  await visitor.goto(at("/"));
  await visitor.getByLabel("API token").fill(token);
  await visitor.getByRole("button", { name: "Sign in", exact: true }).click();
  return visitor;
}

export const at = (path: string) => `${platform.api}${path}`;
export const heading = (name: string | RegExp) => page.getByRole("heading", { level: 1, name });
export const press = (name: string | RegExp) =>
  page.getByRole("button", { name, exact: typeof name === "string" }).click();

/** Opens the palette, searches for `text` and opens the first result, which must have this label. */
export async function takeFromPalette(text: string, label: string | RegExp): Promise<void> {
  await page.keyboard.press("Control+k");
  const palette = page.getByRole("combobox", { name: "Go to" });
  await palette.fill(text);
  await page.getByRole("option", { name: label, selected: true }).waitFor();
  await palette.press("Enter");
  await palette.waitFor({ state: "detached" });
}

/** Selects an option of a list that reflects the URL: the page navigates first, and then updates the list. */
export async function choose(label: string, value: string): Promise<void> {
  const list = page.getByLabel(label, { exact: true });
  await list.selectOption(value);
  await list.locator(`option[value="${value}"]:checked`).waitFor({ state: "attached" });
}
