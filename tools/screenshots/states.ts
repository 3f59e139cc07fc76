import { setTimeout as pause } from "node:timers/promises";
import type { Page, Route } from "playwright-core";
import type { Answer, Client } from "../../src/contract/client.ts";
import { tarOf } from "../../test/support/tar.ts";

export interface Stage {
  readonly page: Page;
  /** Calls the API as the operator. */
  readonly client: Client;
  /** Opens a page and waits until it has loaded. */
  open(path: string): Promise<void>;
  /** Opens a page without waiting for it. */
  visit(path: string): Promise<void>;
  signInAs(token: string): Promise<void>;
}

type State = (stage: Stage) => Promise<unknown>;

const shop = { slug: "shop" };
const everyCall = "**/v1/**";

/** States that no address leads to, by name. The page's routes are removed, and its session goes on, after each of the first ones. */
export const states: Readonly<Record<string, State>> = {
  "deployment-live": async ({ client, open }) => open(await pathOfDeployment(client, "active")),
  "deployment-failed": async ({ client, open }) => open(await pathOfDeployment(client, "failed")),
  "deployment-running": async ({ client, open }) => open(`/projects/shop/builds/${await startBuild(client)}`),
  "folder-plan": async ({ page, open }) => {
    await open("/projects/new-idea");
    await page.getByLabel("Folder to deploy").setInputFiles("templates/node");
    await page.getByRole("heading", { name: "Plan for node" }).waitFor();
  },
  "project-deploying": ({ open }) => open("/projects/shop"),
  "deployments-running": async ({ client, open }) => {
    await open("/projects/shop/deployments");
    await cancelBuilds(client);
  },
  "deployment-cancelled": async ({ client, open }) => {
    const { builds } = await client.call("builds.list", { params: shop });
    await open(`/projects/shop/builds/${builds[0]?.id}`);
  },
  backup: async ({ client, open }) => {
    const { backups } = await client.call("backups.list", { params: shop });
    await open(`/projects/shop/backups/${backups[0]?.id}`);
  },
  certificates: async ({ page, open }) => {
    await page.route("**/v1/projects/shop/domains", orderCertificates);
    await open("/projects/shop/domains");
  },
  "switch-project": async ({ page, open }) => {
    await open("/projects/shop/metrics");
    await openPages(page);
    await page.getByRole("button", { name: "Switch project" }).click();
  },
  "metrics-hover": async ({ page, open }) => {
    await open("/projects/shop/metrics");
    await hoverDeployments(page);
  },
  "metrics-many-deployments": async ({ page, open }) => {
    await page.route("**/v1/projects/shop/metrics?*", deployAllDay);
    await open("/projects/shop/metrics?range=24h");
  },
  palette: async ({ page, open }) => {
    await open("/projects/shop");
    await page.keyboard.press("Control+k");
  },
  "palette-found": async ({ page }) => page.getByRole("combobox").fill("shop: roll"),
  "palette-none": async ({ page }) => page.getByRole("combobox").fill("zzz"),
  keys: async ({ page, open }) => {
    await open("/");
    await page.keyboard.press("?");
  },
  sidebar: async ({ page, open }) => {
    await open("/");
    const menu = page.getByRole("button", { name: "Open the navigation" });
    if (await menu.isVisible()) await menu.click();
  },
  "project-pages": async ({ page, open }) => {
    await open("/projects/shop/logs");
    await openPages(page);
  },
  "not-found": ({ visit }) => visit("/projects/no-such-project"),
  loading: async ({ page, visit }) => {
    await page.route("**/v1/projects/shop/**", () => {});
    await visit("/projects/shop/deployments");
  },
  error: async ({ page, visit }) => {
    const body = JSON.stringify({ error: "The control plane could not do this.", code: "internal_error" });
    await page.route("**/v1/projects/shop/deployments*", (route) => route.fulfill({ status: 500, body }));
    await visit("/projects/shop/deployments");
    await page.getByRole("alert").first().waitFor();
  },
  offline: async ({ page, open }) => {
    await open("/projects/shop/cron");
    await openPages(page);
    await page.route(everyCall, (route) => route.abort());
    await page
      .getByRole("link", { name: /^Data(?:base)?$/ })
      .filter({ visible: true })
      .first()
      .click();
    await page.getByText("The platform does not answer").first().waitFor();
  },
  unreachable: async ({ page, visit }) => {
    await page.route("**/session/resume", (route) => route.abort());
    await visit("/");
  },
  expired: async ({ page, client, signInAs }) => {
    const { id, token } = await client.call("tokens.create", { body: { name: "short-lived" } });
    await signInAs(token ?? "");
    await client.call("tokens.delete", { params: { id } });
    await page.getByRole("heading", { name: "Your session has ended" }).waitFor();
  },
  suspended: async ({ page, client, signInAs }) => {
    const slug = `resting-${Date.now()}`;
    const { owner_token: token } = await client.call("orgs.create", { body: { slug, name: "Resting" } });
    await signInAs(token ?? "");
    await client.call("orgs.disable", { params: { slug } });
    await page.getByRole("heading", { name: "This organization is suspended" }).waitFor();
  },
  "sign-in": async ({ page, visit }) => {
    await page.context().clearCookies();
    await visit("/");
    await page.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  },
  "sign-in-refused": async ({ page }) => {
    await page.getByLabel("API token").fill("berth_no-such-token");
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.locator("[aria-invalid]").waitFor();
  },
  "sign-in-link-used": async ({ page, visit }) => {
    await visit("/sign-in#used-before");
    await page.locator("[aria-invalid]").waitFor();
  },
};

/** Opens a phone's sheet of a project's pages. */
async function openPages(page: Page): Promise<void> {
  const pages = page.getByRole("button", { name: /^Pages of the project/ });
  if (await pages.isVisible()) await pages.click();
}

async function pathOfDeployment(client: Client, status: string): Promise<string> {
  const { deployments } = await client.call("deployments.list", { params: shop });
  return `/projects/shop/builds/${deployments.find((each) => each.status === status)?.build_id}`;
}

/** Starts a build that goes on until it is cancelled, and waits for its first output. */
async function startBuild(client: Client): Promise<string> {
  const scripts = { build: "echo Compiling 214 modules; sleep 600", start: "node server.js" };
  const text = JSON.stringify({ name: "app", private: true, scripts });
  const upload = new Uint8Array(tarOf({ path: "package.json", text }, { path: "server.js", text: "" }));
  const query = { message: "Show prices without taxes" };
  const { build_id: id } = await client.call("builds.upload", { params: shop, query, upload });
  for (;;) {
    const { log } = await client.call("builds.logs", { params: { id } });
    if (log.includes("Compiling 214")) return id;
    await pause(200);
  }
}

async function cancelBuilds(client: Client): Promise<void> {
  const { builds } = await client.call("builds.list", { params: shop });
  for (const { id, status } of builds)
    if (status === "running" || status === "queued") await client.call("builds.cancel", { params: { id } });
}

/** Answers with the platform's metrics and 40 deployments of the last day, some close to each other. */
async function deployAllDay(route: Route): Promise<void> {
  const answer = await route.fetch();
  const metrics = (await answer.json()) as Answer<"metrics.get">;
  const hours = Array.from({ length: 40 }, (_, index) => (index * index * 23) / 1600);
  const deployments = hours.map((hour, index) => ({
    ...metrics.deployments[0],
    number: 1000 + index,
    at: new Date(Date.now() - (23.8 - hour) * 3_600_000).toISOString(),
  }));
  await route.fulfill({ json: { ...metrics, deployments } });
}

/** Answers with the platform's hostnames and how far their certificates are: issued, failed, and under way. */
async function orderCertificates(route: Route): Promise<void> {
  const answer = await route.fetch();
  const { domains } = (await answer.json()) as Answer<"domains.list">;
  const [first] = domains;
  if (first === undefined) throw new Error("the shop has no hostname");
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();
  const found = {
    ...first,
    dns_status: "ok",
    dns_detail: "The A record leads to 203.0.113.7.",
    serving: true,
  } as const;
  type Step = Answer<"domains.list">["domains"][number]["ssl_steps"][number];
  const ordered: Step[] = [
    { at: ago(48), status: "issuing", detail: "Ordered a certificate from Let's Encrypt." },
    {
      at: ago(46),
      status: "issuing",
      detail: "Published the answer to the challenge at /.well-known/acme-challenge/.",
    },
  ];
  const valid = "A certificate of Let's Encrypt, valid for another 89 days.";
  const refused = "The certificate authority could not reach the challenge: connection refused by 203.0.113.7:80.";
  const shown: Answer<"domains.list">["domains"] = [
    {
      ...found,
      ssl_status: "active",
      ssl_detail: valid,
      ssl_next_attempt_at: ago(-59 * 86_400),
      ssl_steps: [...ordered, { at: ago(41), status: "active", detail: valid }],
    },
    {
      ...found,
      id: "failed",
      hostname: "checkout.shop.example.com",
      ssl_status: "failed",
      ssl_detail: refused,
      ssl_next_attempt_at: ago(-600),
      ssl_steps: [...ordered, { at: ago(12), status: "failed", detail: refused }],
    },
    {
      ...found,
      id: "issuing",
      hostname: "a-rather-long-hostname-of-a-campaign.in-the-spring.shop.example.com",
      ssl_status: "issuing",
      ssl_detail: "The certificate authority looks at the challenge.",
      ssl_next_attempt_at: null,
      ssl_steps: ordered,
    },
  ];
  await route.fulfill({ json: { domains: shown } });
}

/** Moves the pointer to the left until it is at a deployment. */
async function hoverDeployments(page: Page): Promise<void> {
  const box = await page.locator("main .u-over").first().boundingBox();
  if (box === null) throw new Error("there is no chart");
  for (let x = box.width - 1; x > 0; x -= 6) {
    await page.mouse.move(box.x + x, box.y + box.height / 2);
    await pause(50);
    if ((await page.locator("[data-hover]", { hasText: "live" }).count()) > 0) return;
  }
}
