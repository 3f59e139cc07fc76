import { setTimeout as pause } from "node:timers/promises";
import { ApiError, createClient, type Client } from "../../src/contract/client.ts";
import type { TestPlatform } from "../../test/e2e/platform.ts";
import { tarOf } from "../../test/support/tar.ts";

const visits = 300;

const server = (answer: string) => `
const lines = ["GET / 200 4 ms", "GET /cart 200 12 ms", "\\u001b[33mwarning\\u001b[39m slow query: 840 ms", "order 1042 paid"];
let at = 0;
setInterval(() => console.log(lines[at++ % lines.length]), 700);
require("node:http").createServer((request, response) => {
  response.statusCode = request.url === "/broken" ? 500 : 200;
  setTimeout(() => response.end(${JSON.stringify(answer)}), Math.random() * 40);
}).listen(process.env.PORT, process.env.HOST);
`;

const migrate = `
const { Client } = require("pg");
(async () => {
  if (!process.env.DATABASE_URL) return;
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  await client.query("create table if not exists customers (id int primary key, name text not null, email text, created_at timestamptz default now())");
  await client.query("create table if not exists orders (id int primary key, customer_id int not null, total numeric(10,2) not null, state text not null, items jsonb, note text, paid boolean not null, created_at timestamptz default now())");
  await client.query("insert into customers select n, 'Customer ' || n, 'customer' || n || '@shop.example' from generate_series(1, 1200) n on conflict do nothing");
  await client.query("insert into orders select n, 1 + n % 1200, n * 3.5, (array['new','paid','sent','returned'])[1 + n % 4], jsonb_build_object('sku', 'A-' || n, 'count', n % 5), case when n % 3 = 0 then 'Leave it at the door, please; the bell does not work' end, n % 2 = 0 from generate_series(1, 25000) n on conflict do nothing");
  await client.end();
})();`;

const application = (answer: string, dependencies: Record<string, string> = {}) => ({
  "package.json": JSON.stringify({ name: "app", private: true, scripts: { start: "node server.js" }, dependencies }),
  "server.js": server(answer),
});

/** The shop: with a database, jobs, a worker, and all that a project may have. */
const shop = (answer: string) => ({
  ...application(answer, { pg: "8.23.1" }),
  "migrate.js": migrate,
  Procfile: "web: node server.js\nrelease: node migrate.js\nworker: node -e 'setInterval(() => {}, 1000)'\n",
  "berth.json": JSON.stringify(
    { health_path: "/", crons: [{ path: "/jobs/mails", schedule: "*/5 * * * *" }] },
    null,
    2,
  ),
  "src/cart.js": "module.exports = (items) => items.reduce((sum, item) => sum + item.price * item.count, 0);\n",
});

type Filled = Pick<TestPlatform, "api" | "token" | "visit">;

/** Fills a platform with what a busy organization has. Resolves with the token of a second, empty organization. */
export async function fillPlatform({ api, token, visit }: Filled): Promise<string> {
  const client = createClient({ baseUrl: api, token });
  await client.call("orgs.update", { params: { slug: "main" }, body: { max_projects: 40 } });
  const { owner_token: emptyToken } = await client.call("orgs.create", { body: { slug: "harbour", name: "Harbour" } });
  await fillShop(client);
  await fillOthers(client);
  const paths = ["/", "/cart", "/orders", "/", "/broken"];
  for (let index = 0; index < visits; index += 1) await visit("shop", paths[index % paths.length]);
  return emptyToken ?? "";
}

async function fillOthers(client: Client): Promise<void> {
  const others = ["gateway", "docs", "blog", "accounts", "search", "mailer", "status-page", "landing", "reports"];
  for (const slug of others) await client.call("projects.create", { body: { slug, name: `The ${slug}` } });
  for (const slug of others.slice(0, 3)) await deploy(client, slug, application(slug), `Release ${slug}`);
  await deploy(client, "search", { ...application("search"), "server.js": "process.exit(3)" }, "Use the new index");
  await client.call("projects.create", { body: { slug: "new-idea", name: "A new idea" } });
}

async function fillShop(client: Client): Promise<void> {
  const params = { slug: "shop" };
  await client.call("projects.create", { body: { slug: "shop", name: "Shop" } });
  await client.call("database.create", { params, body: {} });
  for (let index = 1; index <= 12; index += 1)
    await client.call("env.set", { params: { ...params, key: `SETTING_${index}` }, body: { value: `${index}` } });
  await deploy(client, "shop", shop("one"), "Add the cart");
  await client.call("env.set", { params: { ...params, key: "STRIPE_KEY" }, body: { value: "sk_test" } });
  await deploy(client, "shop", { ...shop("two"), "src/tax.js": "module.exports = 0.2;\n" }, "Compute taxes by country");
  await deploy(client, "shop", { ...shop("x"), "server.js": "throw new Error('no currency')" }, "Cart totals");
  await deploy(
    client,
    "shop",
    shop("three"),
    "Fix the rounding of totals, and show the currency of each line of the cart",
  );
  for (const hostname of ["shop.example.com", "www.shop.example.com"])
    await client.call("domains.attach", { params, body: { hostname } });
  const jobs = [
    ["send-mails", "*/10 * * * *"],
    ["clean-up", "0 3 * * *"],
    ["report", "0 7 * * 1"],
  ] as const;
  for (const [name, schedule] of jobs)
    await client.call("cron.set", { params: { ...params, name }, body: { schedule, path: `/jobs/${name}` } });
  await client.call("cron.run", { params: { ...params, name: "clean-up" } });
  const { id } = await client.call("backups.create", { params, body: {} });
  await until(async () => (await client.call("backups.get", { params: { id } })).status === "completed");
  await client.call("backups.verify", { params: { id } });
  await until(async () => (await client.call("backups.get", { params: { id } })).operation === null);
  await client.call("runs.create", { params, body: { command: "node -e 'console.log(process.version)'" } });
  await askAll(client);
}

/** How many requests wait for a decision. */
export const requested = 4;

async function askAll(client: Client): Promise<void> {
  const params = { slug: "shop" };
  const agent = { name: "agent", role: "owner", approval_mode: true } as const;
  const { token } = await client.call("tokens.create", { body: agent });
  const asking = createClient({ baseUrl: client.baseUrl, token: token ?? "" });
  const row = { ...params, schema: "public", table: "orders" };
  const requests = [
    () => asking.call("data.delete", { params: row, body: { key: { id: 42 } } }),
    () => asking.call("backups.restore", { params, body: {} }),
    () => asking.call("domains.detach", { params: { ...params, hostname: "shop.example.com" } }),
    () => asking.call("projects.delete", { params }),
  ];
  for (const request of requests)
    await request().catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.code !== "approval_required") throw error;
    });
}

async function deploy(client: Client, slug: string, files: Record<string, string>, message: string): Promise<void> {
  const members = Object.entries(files).map(([path, text]) => ({ path, text }));
  const upload = new Uint8Array(tarOf(...members));
  const { build_id: id } = await client.call("builds.upload", { params: { slug }, query: { message }, upload });
  await until(async () => {
    const { status, deployment } = await client.call("builds.get", { params: { id } });
    if (status === "queued" || status === "running") return false;
    return deployment === null || !["pending", "starting"].includes(deployment.status);
  });
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  while (!(await isDone())) await pause(500);
}
