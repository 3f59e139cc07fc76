import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { launchBrowser } from "../../test/support/browser.ts";

/**
 * Pictures of the dashboard's pages into tmp/screenshots, to be looked at: a phone and a wide screen, light and dark.
 *
 *   npm run screenshots -- URL TOKEN-FILE PATH...
 */
const [url, tokenFile, ...paths] = process.argv.slice(2);
const widths = (process.env["SCREENSHOT_WIDTHS"] ?? "390,1440").split(",").map(Number);
const schemes = (process.env["SCREENSHOT_SCHEMES"] ?? "light,dark").split(",") as ("light" | "dark")[];

if (url === undefined || tokenFile === undefined || paths.length === 0)
  throw new Error("Usage: npm run screenshots -- URL TOKEN-FILE PATH...");

const token = readFileSync(tokenFile, "utf8").trim();
const folder = join("tmp", "screenshots");
mkdirSync(folder, { recursive: true });
const { browser, close } = await launchBrowser(Number(new URL(url).port));
try {
  for (const width of widths) for (const scheme of schemes) await picture(browser, width, scheme);
} finally {
  await close();
}

async function picture(from: Browser, width: number, colorScheme: "light" | "dark"): Promise<void> {
  const context = await from.newContext({ viewport: { width, height: width < 640 ? 844 : 900 }, colorScheme });
  const page = await context.newPage();
  page.on("console", (message) => {
    if (message.type() === "error") console.log(`  console: ${message.text()}`);
  });
  page.on("pageerror", (error) => console.log(`  error: ${error.message}`));
  await page.goto(url as string);
  await page.getByLabel("API token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("h1").first().waitFor();
  for (const path of paths) {
    await page.goto(new URL(path, url).href);
    await page.locator("main h1").first().waitFor();
    await page.waitForTimeout(900);
    const name = `${path.replaceAll(/[^a-z0-9]+/gi, "-").replaceAll(/^-|-$/g, "") || "overview"}-${width}-${colorScheme}.png`;
    await page.screenshot({ path: join(folder, name) });
    console.log(join(folder, name));
  }
  await context.close();
}
